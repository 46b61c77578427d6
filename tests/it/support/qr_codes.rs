//! Reads QR codes as a phone does.

use rqrr::PreparedImage;

/// What a PNG says.
#[track_caller]
pub fn png(image: &[u8]) -> String {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(image));
    // A byte for each pixel, however they were packed.
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.color_type), (info.height, png::ColorType::Grayscale));
    read(info.width as usize, &pixels)
}

/// What the first code in a page or image says.
#[track_caller]
pub fn svg(text: &str) -> String {
    svgs(text).into_iter().next().expect("a code")
}

/// What all codes in a page say, as our bars draw them; icons are drawn otherwise.
#[track_caller]
pub fn svgs(text: &str) -> Vec<String> {
    let drawn = text.split("viewBox=\"0 0 ").skip(1).filter_map(|rest| {
        let bars = rest.split("<path d=\"").nth(1)?.split('"').next()?;
        let side = rest.split(' ').next()?.parse().ok()?;
        bars.split('h').next()?.contains(',').then_some((side, bars))
    });
    drawn.map(|(side, bars)| read_bars(side, bars)).collect()
}

#[track_caller]
fn read_bars(side: usize, bars: &str) -> String {
    const PIXELS: usize = 4;
    let mut pixels = vec![u8::MAX; side * PIXELS * side * PIXELS];
    for bar in bars.split('M').skip(1) {
        let (x, rest) = bar.split_once(',').unwrap();
        let (y, rest) = rest.split_once('h').unwrap();
        let run = rest.split('v').next().unwrap();
        let [x, y, run]: [usize; 3] = [x, y, run].map(|number| number.parse().unwrap());
        for line in y * PIXELS..(y + 1) * PIXELS {
            pixels[line * side * PIXELS..][x * PIXELS..(x + run) * PIXELS].fill(0);
        }
    }
    read(side * PIXELS, &pixels)
}

#[track_caller]
fn read(side: usize, pixels: &[u8]) -> String {
    let mut image = PreparedImage::prepare_from_greyscale(side, side, |x, y| pixels[y * side + x]);
    let grids = image.detect_grids();
    assert_eq!(grids.len(), 1, "one code");
    grids[0].decode().unwrap().1
}
