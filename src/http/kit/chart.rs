//! Charts as the part `chart` of `templates/parts.html` draws them: bars for amounts of each day or place, a line for what goes on
//! from one to the next. Only shapes are drawn; every word stands beside them as text, and the figures in a table.

/// How wide and high the drawing is, in units of its own: it is stretched to the space that it gets.
const SIDE: i64 = 1_000;

/// What each figure is of, and what it counts: the heads of the table.
pub type Heads = (&'static str, &'static str);

pub struct Chart {
    pub title: &'static str,
    pub heads: Heads,
    pub points: Vec<Point>,
    pub bars: Vec<Bar>,
    /// The corners of a line, as SVG writes them.
    pub line: Option<String>,
}

/// A figure, with the words for it.
pub struct Point {
    pub label: String,
    pub value: i64,
    pub said: String,
}

pub struct Bar {
    pub x: i64,
    pub y: i64,
    pub width: i64,
    pub height: i64,
}

impl Chart {
    pub fn bars(title: &'static str, heads: Heads, points: Vec<Point>) -> Chart {
        let (slot, most) = (SIDE / points.len().max(1) as i64, most(&points));
        let bar = |(at, point): (usize, &Point)| {
            let height = height(point.value, most);
            Bar { x: at as i64 * slot + slot / 8, y: SIDE - height, width: (slot - slot / 4).max(1), height }
        };
        let bars = points.iter().enumerate().map(bar).collect();
        Chart { title, heads, points, bars, line: None }
    }

    pub fn line(title: &'static str, heads: Heads, points: Vec<Point>) -> Chart {
        let (step, most) = (SIDE / (points.len().max(2) as i64 - 1), most(&points));
        let corner = |(at, point): (usize, &Point)| {
            format!("{},{}", at as i64 * step, SIDE - height(point.value, most))
        };
        let line = points.iter().enumerate().map(corner).collect::<Vec<_>>().join(" ");
        Chart { title, heads, points, bars: Vec::new(), line: Some(line) }
    }

    /// The drawing's own measure, as SVG writes it.
    pub fn measure(&self) -> String {
        format!("0 0 {SIDE} {SIDE}")
    }

    /// The highest figure.
    pub fn most(&self) -> Option<&Point> {
        self.points.iter().max_by_key(|point| point.value)
    }
}

fn most(points: &[Point]) -> i64 {
    points.iter().map(|point| point.value).max().unwrap_or(0).max(1)
}

/// What is more than nothing can be seen.
fn height(value: i64, most: i64) -> i64 {
    let height = i128::from(value.max(0)) * i128::from(SIDE) / i128::from(most);
    i64::try_from(height).unwrap_or(SIDE).max(if value > 0 { SIDE / 100 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[i64]) -> Vec<Point> {
        let point = |value: &i64| Point { label: "a day".into(), value: *value, said: value.to_string() };
        values.iter().map(point).collect()
    }

    #[test]
    fn bars_stand_beside_each_other_and_the_highest_reaches_the_top() {
        let chart = Chart::bars("Orders", ("Day", "Orders"), points(&[0, 5, 1_000_000_000_000, 1]));
        let bars = &chart.bars;
        assert_eq!((bars[0].height, bars[2].height, bars[2].y), (0, SIDE, 0));
        assert!(bars[1].height > 0 && bars[1].y + bars[1].height == SIDE);
        assert!(bars.windows(2).all(|two| two[0].x + two[0].width < two[1].x));
        assert!(bars[3].x + bars[3].width <= SIDE);
        assert_eq!(chart.most().map(|point| point.value), Some(1_000_000_000_000));
    }

    #[test]
    fn a_line_goes_from_side_to_side() {
        let line = |values: &[i64]| Chart::line("Spend", ("Day", "USD"), points(values)).line;
        assert_eq!(line(&[2, 4, 0]).as_deref(), Some("0,500 500,0 1000,1000"));
        assert_eq!(line(&[7]).as_deref(), Some("0,0"));
        assert!(Chart::bars("Orders", ("Day", "Orders"), Vec::new()).most().is_none());
    }
}
