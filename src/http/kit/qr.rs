//! QR codes: drawn as SVG for pages, and as PNG for clients that cannot show SVG.

use std::fmt::Write;

use qrcodegen::{Mask, QrCode, QrCodeEcc, QrSegment, Version};

use crate::error::{Error, Result};

/// The light border that scanners need, in modules.
const QUIET: i32 = 4;

/// A scanner reads any of the eight masks. Weighing which one looks best takes thirty times as long as all the rest,
/// and every checkout carries a code.
pub fn encode(text: &str) -> Result<QrCode> {
    let segments = QrSegment::make_segments(text);
    let (least, most) = (Version::MIN, Version::MAX);
    let checkerboard = Some(Mask::new(0));
    QrCode::encode_segments_advanced(&segments, QrCodeEcc::Medium, least, most, checkerboard, true)
        .map_err(Error::fault)
}

/// Black on white, each row's dark runs as bars of one path.
pub fn svg(code: &QrCode) -> String {
    let side = code.size() + 2 * QUIET;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {side} {side}\" xmlns=\"http://www.w3.org/2000/svg\" shape-rendering=\"crispEdges\">\
         <path fill=\"#fff\" d=\"M0,0h{side}v{side}h-{side}z\"/><path d=\""
    );
    for row in 0..code.size() {
        let mut column = 0;
        while column < code.size() {
            let run = (column..code.size()).take_while(|column| code.get_module(*column, row)).count();
            if run > 0 {
                let (x, y) = (column + QUIET, row + QUIET);
                write!(svg, "M{x},{y}h{run}v1h-{run}z").expect("writing to a text does not fail");
            }
            column += run as i32 + 1;
        }
    }
    svg.push_str("\"/></svg>");
    svg
}

/// One bit a pixel, black on white; a module is `pixels` wide and high.
pub fn png(code: &QrCode, pixels: usize) -> Result<Vec<u8>> {
    let side = (code.size() + 2 * QUIET) as usize * pixels;
    let stride = side.div_ceil(8);
    let mut image = vec![u8::MAX; stride * side];
    for row in 0..code.size() {
        let mut line = vec![u8::MAX; stride];
        for column in (0..code.size()).filter(|column| code.get_module(*column, row)) {
            let left = (column + QUIET) as usize * pixels;
            (left..left + pixels).for_each(|x| line[x / 8] &= !(0x80 >> (x % 8)));
        }
        let top = (row + QUIET) as usize * pixels;
        (top..top + pixels).for_each(|y| image[y * stride..][..stride].copy_from_slice(&line));
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, side as u32, side as u32);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    encoder.set_compression(png::Compression::Fast);
    // Most lines repeat the one above.
    encoder.set_filter(png::Filter::Up);
    let mut writer = encoder.write_header().map_err(Error::fault)?;
    writer.write_image_data(&image).map_err(Error::fault)?;
    writer.finish().map_err(Error::fault)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use rqrr::{Grid, SimpleGrid};

    use super::*;

    /// What a scanner reads.
    fn scanned(code: &QrCode) -> String {
        let size = code.size() as usize;
        let grid = SimpleGrid::from_func(size, |x, y| code.get_module(x as i32, y as i32));
        Grid::new(grid).decode().unwrap().1
    }

    #[test]
    fn whatever_we_hand_out_scans() {
        let contract = "0xc2132D05D31c914a87C6611C10748AEb04B58e8F";
        for number in 0..300u64 {
            let odd = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let address = format!("0x{odd:016X}{odd:024x}");
            for text in [
                format!("LPA:1$smdp.sim.example$SIM-{odd:016X}{number:08X}"),
                format!("ethereum:{contract}@137/transfer?address={address}&uint256={}", odd % 100_000_000),
                format!("{}{address}", "ä".repeat(number as usize % 40)),
                address,
            ] {
                assert_eq!(scanned(&encode(&text).unwrap()), text);
            }
        }
    }

    #[test]
    fn what_no_code_can_hold_is_an_error() {
        assert!(encode(&"x".repeat(3_000)).is_err());
    }
}
