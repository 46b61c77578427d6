//! What is answered to the names that people type, by the built-in article and by one of an operator's own.

use proptest::prelude::*;

use super::*;

const BUILT_IN: &str = include_str!("../../../knowledge/devices/compatibility.md");

fn devices() -> Devices {
    Devices::read(std::iter::once(BUILT_IN))
}

fn verdict(devices: &Devices, typed: &str) -> Option<Verdict> {
    match devices.find(typed) {
        Answer::Listed { verdict, .. } => Some(verdict),
        Answer::Several { .. } | Answer::Unknown { .. } => None,
    }
}

fn called(devices: &Devices, typed: &str) -> Option<String> {
    match devices.find(typed) {
        Answer::Listed { name, .. } => Some(name),
        Answer::Several { .. } | Answer::Unknown { .. } => None,
    }
}

fn near(devices: &Devices, typed: &str) -> Vec<String> {
    match devices.find(typed) {
        Answer::Unknown { near } => near,
        listed => panic!("{typed}: {listed:?}"),
    }
}

#[test]
fn names_are_known_as_people_write_them() {
    let devices = devices();
    for (typed, expected) in [
        ("iPhone 13", Some(Verdict::All)),
        ("apple iphone 13", Some(Verdict::All)),
        ("iphone13", Some(Verdict::All)),
        ("IPHONE 13 PRO MAX 256GB", Some(Verdict::All)),
        ("iPhone 13 128 GB", Some(Verdict::All)),
        ("Apple 13", Some(Verdict::All)),
        ("iPhone XS", Some(Verdict::All)),
        ("iPhone XR", Some(Verdict::All)),
        ("iPhone X", Some(Verdict::None)),
        ("iPhone 8 Plus", Some(Verdict::None)),
        ("iPhone 8+", Some(Verdict::None)),
        ("iPhone SE", Some(Verdict::Some)),
        ("iPhone SE (1st generation)", Some(Verdict::None)),
        ("iPhone SE 2016", Some(Verdict::None)),
        ("iPhone SE 2020", Some(Verdict::All)),
        ("iPhone SE 2", Some(Verdict::All)),
        ("iPhone SE (3rd gen)", Some(Verdict::All)),
        ("Samsung Galaxy S23", Some(Verdict::All)),
        ("Samsung S23 Ultra", Some(Verdict::All)),
        ("galaxy s 23+", Some(Verdict::All)),
        ("Galaxy S23 Plus 5G", Some(Verdict::All)),
        ("Galaxy Z Fold 5", Some(Verdict::All)),
        ("Galaxy Z Flip 5G", Some(Verdict::Some)),
        ("Galaxy S20", Some(Verdict::Some)),
        ("Galaxy Note 20 Ultra", Some(Verdict::Some)),
        ("Galaxy S10", Some(Verdict::None)),
        ("Galaxy S10 5G", Some(Verdict::None)),
        ("Pixel 7a", Some(Verdict::All)),
        ("Google Pixel 3", Some(Verdict::Some)),
        ("Pixel 2 XL", Some(Verdict::None)),
        ("iPad", Some(Verdict::Some)),
        ("iPad Pro 12.9", Some(Verdict::Some)),
        ("iPad Pro 11-inch Wi-Fi", None),
        ("iPad Pro 11-inch cellular", Some(Verdict::Some)),
        ("ipad (9th generation)", Some(Verdict::Some)),
        ("Apple Watch SE", Some(Verdict::None)),
        ("Galaxy Watch 6", Some(Verdict::None)),
        ("Xiaomi 13", Some(Verdict::Some)),
        ("One Plus 12", Some(Verdict::Some)),
        ("Sony Xperia 10 IV", Some(Verdict::Some)),
    ] {
        assert_eq!(verdict(&devices, typed), expected, "{typed}: {:?}", devices.find(typed));
    }
}

#[test]
fn what_is_not_listed_is_not_claimed() {
    let devices = devices();
    for typed in [
        "",
        " ",
        "iPhone",
        "iPhone 1",
        "iPhone 1 3",
        "iPhone 133",
        "iPhone 19",
        "iPhone 13 Ultra",
        "13",
        "13 Pro",
        "SE",
        "X",
        "S23",
        "Note 20",
        "Apple",
        "Apple 7",
        "Samsung",
        "Galaxy",
        "Galaxy 4",
        "Galaxy S2",
        "Galaxy S233",
        "Galaxy A52",
        "Google Pixel",
        "Pixel 1",
        "Nokia 3310",
        "iPhnoe 13",
        "Samsung 13",
        "Xiaomi",
        "*#06#",
        "<script>alert(1)</script>",
        "日本",
        "256GB",
        "GB",
    ] {
        assert_eq!(verdict(&devices, typed), None, "{typed}: {:?}", devices.find(typed));
    }
}

#[test]
fn near_names_are_proposed() {
    let devices = devices();
    for (typed, proposed) in [
        ("iPhnoe 13", "Apple iPhone 13"),
        ("S23", "Samsung Galaxy S23"),
        ("Note 20", "Samsung Galaxy Note20"),
        ("13", "Apple iPhone 13"),
        ("13", "Xiaomi 13"),
        ("Galxy S23 Ultra", "Samsung Galaxy S23 Ultra"),
        ("Pixle 7a", "Google Pixel 7a"),
    ] {
        let near = near(&devices, typed);
        assert!(near.contains(&proposed.to_string()) && near.len() <= MOST_NEAR, "{typed}: {near:?}");
    }
    for typed in ["", "qwertz", "日本"] {
        assert_eq!(near(&devices, typed), Vec::<String>::new(), "{typed}");
    }
}

#[test]
fn a_line_or_a_maker_is_asked_for_more() {
    let devices = devices();
    for (typed, first, other) in [
        ("iPhone", "Apple iPhone Air", "Apple iPhone 4"),
        ("samsung", "Samsung Galaxy Z Flip7", "Samsung Galaxy S10 5G"),
        ("Galaxy 5G", "Samsung Galaxy Z Flip7", "Samsung Galaxy A54"),
        ("Google Pixel", "Google Pixel 10 Pro Fold", "Google Pixel 2"),
        ("Xiaomi", "Xiaomi 15 Ultra", "Xiaomi 12T Pro"),
        ("Apple", "Apple iPhone Air", "Apple Watch Ultra"),
    ] {
        let Answer::Several { names } = devices.find(typed) else {
            panic!("{typed}: {:?}", devices.find(typed))
        };
        assert_eq!(names[0], first, "{typed}");
        assert!(names.contains(&other.to_string()), "{typed}: {names:?}");
        for name in &names {
            assert!(verdict(&devices, name).is_some(), "{name} is proposed and not known");
        }
    }
}

#[test]
fn every_listed_name_is_known_by_itself() {
    let devices = devices();
    let mut count = 0;
    for line in &devices.lines {
        for device in &line.devices {
            let name = line.full(device);
            let told = devices.find(&name);
            let expected =
                Answer::Listed { name: name.clone(), verdict: line.verdict, note: line.note.clone() };
            assert_eq!(told, expected, "{name}");
            count += 1;
        }
    }
    assert!(count > 150, "{count} devices");
}

#[test]
fn an_operators_own_lists_are_read() {
    let own = "## Devices that take an eSIM\n\n* **Acme Rocket**: 1, 1 Pro. Not those\n  of 2019. Ask us.\n\nA remark.\n\
               - no list\n## DEVICES THAT TAKE NONE\n- **Acme**: Brick\n## Others\n- **Acme**: Stone";
    let devices = Devices::read(std::iter::once(own));
    let rocket = Answer::Listed {
        name: "Acme Rocket 1 Pro".into(),
        verdict: Verdict::All,
        note: "Not those of 2019. Ask us.".into(),
    };
    assert_eq!(devices.find("rocket 1 pro"), rocket);
    assert_eq!(verdict(&devices, "acme brick"), Some(Verdict::None));
    assert_eq!((verdict(&devices, "acme stone"), verdict(&devices, "iPhone 13")), (None, None));
    // Listed under two headings: neither is claimed.
    let torn = format!("{own}\n## Devices that take none\n- **Acme Rocket**: 1");
    let near = vec!["Acme Rocket 1".to_string()];
    assert_eq!(Devices::read(std::iter::once(torn.as_str())).find("rocket 1"), Answer::Unknown { near });
    assert_eq!(Devices::read(std::iter::empty()).find("iPhone 13"), Answer::Unknown { near: Vec::new() });
}

proptest! {
    /// A yes names a listed device, whatever was typed.
    #[test]
    fn any_name_is_answered(typed in "\\PC{0,80}|(iPhone|Galaxy|S|1|3|13|Pro|[0-9]{1,3}|GB| |\\+){0,8}") {
        let devices = devices();
        if let Answer::Listed { name, .. } = devices.find(&typed) {
            prop_assert_eq!(called(&devices, &name), Some(name));
        }
    }
}
