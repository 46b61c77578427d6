//! The first page of help: every command, in groups, on one screen. Settings are listed by `simgate serve --help`.

use clap::Command;

/// The groups, and the commands of each in the order in which they are listed.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Money", &["wallet", "transfers", "payout", "sweep", "addresses"]),
    ("People", &["partner", "key", "webhook", "user", "mail"]),
    ("Orders", &["order", "find"]),
    ("Catalog", &["supplier", "catalog", "price", "coupon"]),
    ("Books", &["report", "ledger", "audit"]),
    ("Running", &["serve", "config", "doctor", "migrate", "backup", "restore", "completions"]),
];

const AFTER: &str = "\
Options:
  --json         Print one JSON document instead of text
  --config PATH  Read settings from this file instead of ./simgate.toml
  -h, -V         Print help, or the version (--help, --version)

Without a command it serves. `simgate COMMAND --help` tells more, with an example;
`simgate serve --help` lists the settings, `simgate config` those in effect.
Exit codes: 0 done, 1 refused, 2 wrong usage or settings.";

/// Replaces the list of commands on the first page by the groups.
pub fn on(command: Command) -> Command {
    let groups: Vec<String> = GROUPS.iter().map(|(title, names)| group(&command, title, names)).collect();
    let page = format!(
        "{{about}}\n\n{{usage-heading}} simgate [OPTIONS] [COMMAND]\n\n{}\n\n{AFTER}\n",
        groups.join("\n\n")
    );
    command.help_template(page)
}

fn group(command: &Command, title: &str, names: &[&str]) -> String {
    let line = |name: &&str| {
        let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
        format!("  {name:11}  {}", about.unwrap_or_default())
    };
    let lines: Vec<String> = names.iter().map(line).collect();
    format!("{title}:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command_line;

    #[test]
    fn every_command_stands_in_one_group() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        listed.sort_unstable();
        let line = command_line();
        let mut commands: Vec<&str> = line.get_subcommands().map(Command::get_name).collect();
        commands.sort_unstable();
        assert_eq!(listed, commands);
    }

    #[test]
    fn the_first_page_is_short_and_names_no_setting() {
        let page = command_line().render_long_help().to_string();
        assert!(page.lines().count() <= 50 && page.lines().all(|line| line.chars().count() <= 82), "{page}");
        assert!(!page.contains("--listen"), "{page}");
        let serve = command_line().find_subcommand_mut("serve").unwrap().render_long_help().to_string();
        assert!(serve.contains("--listen"), "{serve}");
    }

    /// Each command shows how it is used, by a line that it understands.
    #[test]
    fn every_command_has_an_example_that_works() {
        let mut line = command_line();
        line.build();
        each_leaf(&line, "simgate", &mut |command, path| {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = after.lines().filter_map(|line| line.strip_prefix("Example: ")).collect();
            assert!(!lines.is_empty(), "{path} has no example");
            for example in lines {
                assert!(example.starts_with(path), "{example}");
                let typed = example.split(" > ").next().unwrap();
                if let Err(error) = command_line().try_get_matches_from(words(typed)) {
                    panic!("{example}: {error}");
                }
            }
        });
    }

    /// The table of the README names every command, and none that is not there.
    #[test]
    fn the_readme_lists_the_commands() {
        let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
        let (_, table) = readme.split_once("| command | does |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with("| `"));
        let mut said: Vec<String> = Vec::new();
        for row in rows {
            let named = row.split('`').nth(1).unwrap().replace("\\|", "|");
            let (command, rest) = named.split_once(' ').unwrap_or((&named, ""));
            let inner = rest.split(' ').next().unwrap();
            if inner.is_empty() || inner.starts_with(char::is_uppercase) {
                said.push(command.into());
            } else {
                said.extend(inner.split('|').map(|inner| format!("{command} {inner}")));
            }
        }
        let mut there = Vec::new();
        let mut line = command_line();
        line.build();
        each_leaf(&line, "simgate", &mut |_, path| there.push(path["simgate ".len()..].to_string()));
        said.sort_unstable();
        there.sort_unstable();
        assert_eq!(said, there);
    }

    fn each_leaf(command: &Command, path: &str, look: &mut impl FnMut(&Command, &str)) {
        let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help");
        let mut is_leaf = true;
        for inner in inner {
            is_leaf = false;
            each_leaf(inner, &format!("{path} {}", inner.get_name()), look);
        }
        if is_leaf {
            look(command, path);
        }
    }

    /// As a shell splits them: what stands between quotes is one word.
    fn words(line: &str) -> Vec<String> {
        let parts = line.split('"').enumerate();
        let split = |(n, part): (usize, &str)| -> Vec<String> {
            if n % 2 == 1 { vec![part.into()] } else { part.split_whitespace().map(str::to_string).collect() }
        };
        parts.flat_map(split).collect()
    }
}
