//! One call in the languages that people paste from: curl, TypeScript and Python.

/// A request as a sample shows it.
pub struct Call {
    pub method: String,
    pub url: String,
    pub headers: Vec<Header>,
    /// JSON, as it is to be read.
    pub body: Option<String>,
}

/// A header of a sample. A credential comes from the environment: the variable's value follows `value`.
pub struct Header {
    pub name: String,
    pub value: String,
    pub variable: Option<String>,
}

pub fn curl(call: &Call) -> String {
    let method = match (call.method.as_str(), &call.body) {
        ("GET", _) | ("POST", Some(_)) => String::new(),
        (method, _) => format!("-X {method} "),
    };
    let mut parts = vec![format!("curl -sS {method}\"{}\"", call.url)];
    for Header { name, value, variable } in &call.headers {
        let variable = variable.as_ref().map(|name| format!("${name}")).unwrap_or_default();
        parts.push(format!("-H \"{name}: {value}{variable}\""));
    }
    if let Some(body) = &call.body {
        parts.push("-H \"Content-Type: application/json\"".into());
        parts.push(format!("-d '{}'", body.replace('\'', "'\\''")));
    }
    parts.join(" \\\n  ")
}

pub fn typescript(call: &Call) -> String {
    let mut headers: Vec<String> = call
        .headers
        .iter()
        .map(|Header { name, value, variable }| match variable {
            Some(variable) if value.is_empty() => format!("\"{name}\": process.env.{variable}!"),
            Some(variable) => format!("\"{name}\": `{value}${{process.env.{variable}}}`"),
            None => format!("\"{name}\": \"{value}\""),
        })
        .collect();
    let mut options = Vec::new();
    if call.method != "GET" {
        options.push(format!("method: \"{}\"", call.method));
    }
    if call.body.is_some() {
        headers.push("\"Content-Type\": \"application/json\"".into());
    }
    if !headers.is_empty() {
        options.push(format!("headers: {{\n    {},\n  }}", headers.join(",\n    ")));
    }
    if let Some(body) = &call.body {
        options.push(format!("body: JSON.stringify({})", body.replace('\n', "\n  ")));
    }
    let options = match options.is_empty() {
        true => String::new(),
        false => format!(", {{\n  {},\n}}", options.join(",\n  ")),
    };
    format!(
        "const answer = await fetch(\"{}\"{options});\nconsole.log(answer.status, await answer.json());",
        call.url
    )
}

pub fn python(call: &Call) -> String {
    let headers: Vec<String> = call
        .headers
        .iter()
        .map(|Header { name, value, variable }| match variable {
            Some(variable) if value.is_empty() => format!("\"{name}\": os.environ[\"{variable}\"]"),
            Some(variable) => format!("\"{name}\": \"{value}\" + os.environ[\"{variable}\"]"),
            None => format!("\"{name}\": \"{value}\""),
        })
        .collect();
    let mut given = vec![format!("\"{}\"", call.url)];
    if !headers.is_empty() {
        given.push(format!("headers={{\n        {},\n    }}", headers.join(",\n        ")));
    }
    if let Some(body) = &call.body {
        given.push(format!("json={}", in_python(body).replace('\n', "\n    ")));
    }
    let secrets = call.headers.iter().any(|header| header.variable.is_some());
    let os = if secrets { "import os\n\n" } else { "" };
    format!(
        "{os}import requests\n\nanswer = requests.{}(\n    {},\n)\nprint(answer.status_code, answer.json())",
        call.method.to_lowercase(),
        given.join(",\n    ")
    )
}

/// JSON is Python but for three words, where they are not inside a text, and Python goes in by four.
fn in_python(json: &str) -> String {
    let deeper = |line: &str| " ".repeat(line.len() - line.trim_start().len()) + line;
    let json = json.lines().map(deeper).collect::<Vec<_>>().join("\n");
    let mut inside = false;
    let mut python = String::new();
    for part in json.split_inclusive('"') {
        let text = part.trim_end_matches('"');
        let words = || text.replace("true", "True").replace("false", "False").replace("null", "None");
        python.push_str(&if inside { text.into() } else { words() });
        python.push_str(&part[text.len()..]);
        let escaped = inside && text.ends_with('\\');
        inside ^= part.ends_with('"') && !escaped;
    }
    python
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Call {
        let secret = |name: &str, value: &str, variable: &str| Header {
            name: name.into(),
            value: value.into(),
            variable: Some(variable.into()),
        };
        Call {
            method: "POST".into(),
            url: "https://gateway.example/orders".into(),
            headers: vec![secret("X-B2B-Key", "", "B2B_KEY"), secret("Authorization", "Bearer ", "TOKEN")],
            body: Some("{\n  \"name\": \"Ann's\",\n  \"gift\": true\n}".into()),
        }
    }

    #[test]
    fn a_call_is_written_in_three_languages() {
        let curl_says = r#"curl -sS "https://gateway.example/orders" \
  -H "X-B2B-Key: $B2B_KEY" \
  -H "Authorization: Bearer $TOKEN" \
  -H "Content-Type: application/json" \
  -d '{
  "name": "Ann'\''s",
  "gift": true
}'"#;
        assert_eq!(curl(&order()), curl_says);
        let typescript_says = r#"const answer = await fetch("https://gateway.example/orders", {
  method: "POST",
  headers: {
    "X-B2B-Key": process.env.B2B_KEY!,
    "Authorization": `Bearer ${process.env.TOKEN}`,
    "Content-Type": "application/json",
  },
  body: JSON.stringify({
    "name": "Ann's",
    "gift": true
  }),
});
console.log(answer.status, await answer.json());"#;
        assert_eq!(typescript(&order()), typescript_says);
        let python_says = r#"import os

import requests

answer = requests.post(
    "https://gateway.example/orders",
    headers={
        "X-B2B-Key": os.environ["B2B_KEY"],
        "Authorization": "Bearer " + os.environ["TOKEN"],
    },
    json={
        "name": "Ann's",
        "gift": True
    },
)
print(answer.status_code, answer.json())"#;
        assert_eq!(python(&order()), python_says);
    }

    #[test]
    fn a_call_without_anything_is_short() {
        let url = "https://gateway.example/a?b=c".into();
        let call = Call { method: "GET".into(), url, headers: vec![], body: None };
        assert_eq!(curl(&call), "curl -sS \"https://gateway.example/a?b=c\"");
        assert!(
            typescript(&call).starts_with("const answer = await fetch(\"https://gateway.example/a?b=c\");\n")
        );
        assert!(python(&call).starts_with("import requests\n\nanswer = requests.get(\n    \"https://"));
        let delete = Call { method: "DELETE".into(), ..call };
        assert_eq!(curl(&delete), "curl -sS -X DELETE \"https://gateway.example/a?b=c\"");
    }

    #[test]
    fn words_inside_of_a_text_stay_in_python() {
        let json = r#"{"a": true, "b": "true \\" null", "c": [null, false]}"#;
        assert_eq!(in_python(json), r#"{"a": True, "b": "true \\" null", "c": [None, False]}"#);
    }
}
