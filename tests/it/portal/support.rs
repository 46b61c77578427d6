//! Members of partners' teams, each with a browser of their own.

use simgate::domain::role::Role;

use crate::support::desk;
pub use crate::support::desk::{OPEN, account_of};
use crate::support::harness::Gateway;
use crate::support::visitor::Visitor;

/// Has somebody join the team of the gateway's own partner: a browser that is signed in.
pub async fn member(gateway: &Gateway, role: Role) -> Visitor {
    let name = role.as_str().to_lowercase();
    member_of(gateway, &gateway.partner, &format!("{name}@travel.example"), role).await
}

/// The same in the team of any partner.
pub async fn member_of(gateway: &Gateway, partner: &str, email: &str, role: Role) -> Visitor {
    desk::member_of(gateway, account_of(gateway, partner).await, email, role).await
}

/// The values of an attribute, wherever it stands on a page.
pub fn attributes(page: &str, name: &str) -> Vec<String> {
    let start = format!(" {name}=\"");
    page.split(&start).skip(1).map(|rest| plain(rest.split('"').next().unwrap())).collect()
}

/// An escaped text as its reader sees it.
pub fn plain(text: &str) -> String {
    let pairs = [("&#38;", "&"), ("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'")];
    pairs.iter().fold(text.to_string(), |text, (written, meant)| text.replace(written, meant))
}

/// Each line of a log tells its time to the second, for people and for the script that puts it into their zone.
pub fn seconds_are_told(page: &str, least: usize) {
    let times: Vec<&str> =
        page.split("<time datetime=\"").skip(1).filter(|time| time.contains("\" data-seconds>")).collect();
    let exact: Vec<&&str> = times
        .iter()
        .filter(|time| {
            let (iso, rest) = time.split_once("\" data-seconds>").unwrap();
            rest.split('<').next().unwrap().ends_with(&format!(", {} UTC", &iso[11..19]))
        })
        .collect();
    assert!(exact.len() >= least && exact.len() == times.len(), "{page}");
}

/// The lines of a CSV file, cell by cell.
pub fn cells(file: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = file.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                line.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            other => cell.push(other),
        }
    }
    assert!(line.is_empty() && cell.is_empty() && !quoted, "the file breaks off");
    lines
}
