//! The text of a database URL: where its parameters begin, what they say, and how it is shown to people.

/// A password may hold a question mark, so the query begins after the `@`.
pub fn split_query(url: &str) -> (&str, &str) {
    let behind = url.find('@').unwrap_or(0);
    match url[behind..].find('?') {
        Some(at) => (&url[..behind + at], &url[behind + at + 1..]),
        None => (url, ""),
    }
}

/// A name and its value. Unlike in a form, a plus stays a plus.
pub fn decoded(piece: &str) -> (String, String) {
    let plain = piece.replace('+', "%2B");
    let pair = form_urlencoded::parse(plain.as_bytes()).next();
    pair.map(|(name, value)| (name.into_owned(), value.into_owned())).unwrap_or_default()
}

/// A database URL for people: without the text between the user's name and the `@`, and without passwords among its
/// parameters. A text that is not a URL and may hold a password is not shown at all.
pub fn hide_password(url: &str) -> String {
    if !url.starts_with("sqlite:") && !url.contains("://") && url.contains(['@', '=']) {
        return "(hidden)".into();
    }
    let shown = match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) => match url[scheme + 3..at.max(scheme + 3)].find(':') {
            Some(colon) => format!("{}:(hidden){}", &url[..scheme + 3 + colon], &url[at..]),
            None => url.into(),
        },
        _ => url.to_string(),
    };
    let (front, query) = split_query(&shown);
    if query.is_empty() {
        return shown;
    }
    let hidden = |piece: &str| match decoded(piece).0.as_str() {
        "password" => "password=(hidden)".to_string(),
        _ => piece.to_string(),
    };
    format!("{front}?{}", query.split('&').map(hidden).collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden() {
        for (url, shown) in [
            ("postgres://me:pw@host/db", "postgres://me:(hidden)@host/db"),
            ("postgres://me:p?w@host/db?sslmode=require", "postgres://me:(hidden)@host/db?sslmode=require"),
            ("postgres://me@host/db?password=pw&port=1", "postgres://me@host/db?password=(hidden)&port=1"),
            ("postgres://me@host/db?pass%77ord=pw", "postgres://me@host/db?password=(hidden)"),
            ("sqlite:x.db", "sqlite:x.db"),
            ("simgate.db", "simgate.db"),
            ("postgres:me:pw@host/db", "(hidden)"),
            ("host=here password=pw", "(hidden)"),
        ] {
            assert_eq!(hide_password(url), shown);
        }
    }
}
