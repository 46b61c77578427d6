//! The knowledge base: articles in Markdown that are part of the program, and those of a folder that replace or add to
//! them. Read once, at start. Help pages, tools and resources show the same texts.

use std::fs;
use std::path::{Path, PathBuf};

/// What an article says where the operator's contact belongs.
const CONTACT: &str = "{{support_contact}}";
const NO_CONTACT: &str = "the shop where you bought the eSIM";

/// In the order in which they are shown.
const BUILT_IN: &[(&str, &str)] = &[
    ("install/ios", include_str!("../knowledge/install/ios.md")),
    ("install/android", include_str!("../knowledge/install/android.md")),
    ("install/samsung", include_str!("../knowledge/install/samsung.md")),
    ("install/other-makers", include_str!("../knowledge/install/other-makers.md")),
    ("devices/compatibility", include_str!("../knowledge/devices/compatibility.md")),
    ("trouble/activation", include_str!("../knowledge/trouble/activation.md")),
    ("trouble/no-data", include_str!("../knowledge/trouble/no-data.md")),
    ("policy/refunds", include_str!("../knowledge/policy/refunds.md")),
    ("support/contact", include_str!("../knowledge/support/contact.md")),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Article {
    /// `install/ios`: the path of its file, and of its page below `/help`.
    pub id: String,
    pub title: String,
    /// Markdown, without the title.
    pub text: String,
}

pub struct Library {
    articles: Vec<Article>,
}

impl Library {
    /// The built-in articles with those of `folder` over them. What is wrong is named, for the operator.
    pub fn load(folder: Option<&Path>, contact: Option<&str>) -> Result<Library, String> {
        let contact = contact.unwrap_or(NO_CONTACT);
        let mut articles: Vec<Article> = Vec::new();
        for (id, text) in BUILT_IN {
            articles.push(read(id, text, contact)?);
        }
        for path in folder.map_or(Ok(Vec::new()), files_in)? {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let id = folder.and_then(|folder| id_of(folder, &path)).ok_or_else(|| {
                format!("{}: names of articles have small letters, digits and hyphens", path.display())
            })?;
            let article = read(&id, &text, contact)?;
            match articles.iter_mut().find(|known| known.id == id) {
                Some(known) => *known = article,
                None => articles.push(article),
            }
        }
        Ok(Library { articles })
    }

    pub fn articles(&self) -> &[Article] {
        &self.articles
    }

    pub fn article(&self, id: &str) -> Option<&Article> {
        self.articles.iter().find(|article| article.id == id)
    }

    /// The articles that hold any word of the topic, the best first; all of them when it says nothing.
    pub fn search(&self, topic: &str) -> Vec<&Article> {
        let topic = topic.to_lowercase();
        let words: Vec<&str> =
            topic.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).collect();
        if words.is_empty() {
            return self.articles.iter().collect();
        }
        let mut found: Vec<(usize, &Article)> =
            self.articles.iter().map(|article| (article.relevance(&words), article)).collect();
        found.retain(|(relevance, _)| *relevance > 0);
        found.sort_by_key(|(relevance, _)| std::cmp::Reverse(*relevance));
        found.into_iter().map(|(_, article)| article).collect()
    }
}

impl Article {
    /// A word in the name or the title says what an article is about; one in the text may be there by the way.
    fn relevance(&self, words: &[&str]) -> usize {
        let (name, text) = (format!("{} {}", self.id, self.title).to_lowercase(), self.text.to_lowercase());
        let of = |word: &&str| 10 * usize::from(name.contains(*word)) + usize::from(text.contains(*word));
        words.iter().map(of).sum()
    }
}

fn read(id: &str, text: &str, contact: &str) -> Result<Article, String> {
    let (first, rest) = text.trim_start().split_once('\n').unwrap_or((text, ""));
    let title = first.strip_prefix("# ").map(str::trim).filter(|title| !title.is_empty());
    let title = title.ok_or_else(|| format!("the article {id:?} does not begin with a title: # Title"))?;
    let text = rest.trim().replace(CONTACT, contact);
    Ok(Article { id: id.into(), title: title.into(), text })
}

/// Every Markdown file below a folder, in the order of their names.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.is_dir() {
            files.extend(files_in(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn id_of(folder: &Path, file: &Path) -> Option<String> {
    let inside = file.strip_prefix(folder).ok()?.with_extension("");
    let parts: Option<Vec<&str>> = inside.iter().map(|part| part.to_str()).collect();
    let id = parts?.join("/");
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-/".contains(&byte);
    (!id.is_empty() && id.bytes().all(plain)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_are_found_by_what_they_are_about() {
        let library = Library::load(None, Some("help@shop.example")).unwrap();
        assert_eq!(library.articles().len(), BUILT_IN.len());
        for (topic, first) in [
            ("iPhone", "install/ios"),
            ("samsung galaxy", "install/samsung"),
            ("refund policy", "policy/refunds"),
            ("no data roaming", "trouble/no-data"),
            ("compatible devices", "devices/compatibility"),
        ] {
            assert_eq!(library.search(topic)[0].id, first, "{topic}");
        }
        assert_eq!(library.search("  ").len(), BUILT_IN.len());
        assert_eq!(library.search("zzzz").len(), 0);
        assert!(library.article("support/contact").unwrap().text.contains("help@shop.example"));
        assert!(library.articles().iter().all(|article| !article.text.contains("{{")));
    }

    #[test]
    fn a_folder_replaces_and_adds() {
        let folder =
            std::env::temp_dir().join(format!("simgate_knowledge_{:x}", crate::vault::random() as u64));
        fs::create_dir_all(folder.join("policy")).unwrap();
        fs::write(folder.join("policy/refunds.md"), "# Ours\n\nAsk {{support_contact}}.").unwrap();
        fs::write(folder.join("vat.md"), "# VAT\nNone.").unwrap();
        let library = Library::load(Some(&folder), Some("us")).unwrap();
        assert_eq!(library.articles().len(), BUILT_IN.len() + 1);
        let refunds = library.article("policy/refunds").unwrap();
        assert_eq!((refunds.title.as_str(), refunds.text.as_str()), ("Ours", "Ask us."));
        assert_eq!(library.article("vat").unwrap().title, "VAT");
        fs::write(folder.join("vat.md"), "None.").unwrap();
        assert!(Library::load(Some(&folder), None).err().unwrap().contains("\"vat\""));
        fs::write(folder.join("vat.md"), "# VAT").unwrap();
        fs::write(folder.join("Bad Name.md"), "# Bad").unwrap();
        assert!(Library::load(Some(&folder), None).err().unwrap().contains("Bad Name.md"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(Library::load(Some(&folder), None).is_err());
    }
}
