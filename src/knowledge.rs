//! The knowledge base: Markdown articles that are part of the program, and those of a folder that replace or add to
//! them. Read once, at start. Help pages, tools and resources show the same texts.

use std::fs;
use std::path::{Path, PathBuf};

/// The placeholder in articles for the operator's contact.
const CONTACT: &str = "{{support_contact}}";
const NO_CONTACT: &str = "none is published here. Reply to the mail of your order, or ask whoever gave you the link to this \
                          service.";
/// The article for questions that the others do not answer: it leads to a person, and says what the articles are about.
const LAST_RESORT: &str = "support/contact";
/// Words without meaning for a search: they are in every question, or in every article.
const EMPTY_WORDS: &[&str] = &[
    "about", "am", "an", "and", "are", "at", "be", "been", "but", "by", "can", "could", "did", "do", "does",
    "doesn", "don", "esim", "esims", "for", "from", "get", "go", "got", "had", "has", "have", "help", "how",
    "if", "in", "into", "is", "isn", "it", "its", "just", "me", "my", "need", "no", "of", "on", "one", "or",
    "our", "out", "please", "shall", "should", "sim", "so", "some", "tell", "that", "the", "their", "them",
    "then", "there", "they", "this", "to", "up", "us", "use", "using", "want", "was", "we", "what", "when",
    "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

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
    /// Words by which people search for it, whether its text uses them or not.
    keywords: Vec<String>,
}

pub struct Library {
    articles: Vec<Article>,
}

impl Library {
    /// The built-in articles with those of `folder` over them. An error names the problem, for the operator.
    pub fn load(folder: Option<&Path>, contact: Option<&str>) -> Result<Library, String> {
        let contact = contact.unwrap_or(NO_CONTACT);
        let mut articles: Vec<Article> = Vec::new();
        for (id, text) in BUILT_IN {
            articles.push(read(id, text, contact)?);
        }
        for path in folder.map_or(Ok(Vec::new()), files_in)? {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let id = folder.and_then(|folder| id_of(folder, &path)).ok_or_else(|| {
                format!("{}: article names have lower-case letters, digits and hyphens", path.display())
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

    /// All articles, one after the other.
    pub fn in_one_text(&self) -> String {
        let texts = self.articles.iter().map(|article| format!("# {}\n\n{}\n", article.title, article.text));
        texts.collect::<Vec<_>>().join("\n")
    }

    pub fn article(&self, id: &str) -> Option<&Article> {
        self.articles.iter().find(|article| article.id == id)
    }

    /// The articles on one subject: those in its folder.
    pub fn about<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a Article> {
        self.articles.iter().filter(move |article| article.folder() == Some(folder))
    }

    /// The articles that have every one of these words somewhere, also when only its beginning was typed: first those
    /// with more of them in the title, then the better match.
    pub fn with_every_word(&self, words: &[String]) -> Vec<&Article> {
        let mut found: Vec<&Article> =
            self.articles.iter().filter(|article| article.has_every(words)).collect();
        found.sort_by_cached_key(|article| {
            std::cmp::Reverse((article.in_title(words), article.relevance(words)))
        });
        found
    }

    /// The articles that match any word of the topic, the best first; all of them when the topic has no words, and the
    /// way to a person when none matches.
    pub fn search(&self, topic: &str) -> Vec<&Article> {
        let words = telling_words(topic);
        if words.is_empty() {
            return self.articles.iter().collect();
        }
        let mut found: Vec<(usize, &Article)> =
            self.articles.iter().map(|article| (article.relevance(&words), article)).collect();
        found.retain(|(relevance, _)| *relevance > 0);
        found.sort_by_key(|(relevance, _)| std::cmp::Reverse(*relevance));
        if found.is_empty() {
            return self.article(LAST_RESORT).into_iter().collect();
        }
        found.into_iter().map(|(_, article)| article).collect()
    }
}

impl Article {
    /// The first part of its name, when it has several.
    pub fn folder(&self) -> Option<&str> {
        self.id.split_once('/').map(|(folder, _)| folder)
    }

    fn has_every(&self, words: &[String]) -> bool {
        let known = [words_of(&self.id), words_of(&self.title), words_of(&self.text)].concat();
        let is_known = |word: &String| known.iter().chain(&self.keywords).any(|known| is_meant(known, word));
        words.iter().all(is_known)
    }

    fn in_title(&self, words: &[String]) -> usize {
        let title = words_of(&self.title);
        words.iter().filter(|word| title.iter().any(|known| is_meant(known, word))).count()
    }

    /// Keywords, name and title say what an article is about; a word in the text may be incidental.
    fn relevance(&self, words: &[String]) -> usize {
        let name = words_of(&format!("{} {}", self.id, self.title));
        let text = words_of(&self.text);
        let of = |word: &String| {
            let among = |known: &[String]| usize::from(known.iter().any(|known| is_akin(known, word)));
            20 * among(&self.keywords) + 10 * among(&name) + among(&text)
        };
        words.iter().map(of).sum()
    }
}

/// The words of a text that say what it is about.
pub fn telling_words(text: &str) -> Vec<String> {
    let mut words = words_of(text);
    words.retain(|word| !EMPTY_WORDS.contains(&word.as_str()));
    words
}

/// Whether a word of a text is one that was asked for, or the one whose beginning was typed.
pub fn is_meant(known: &str, typed: &str) -> bool {
    known.starts_with(typed) || is_akin(known, typed)
}

/// In lower case; single letters, such as the ends of `don't` and `it's`, are left out.
fn words_of(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).map(String::from).collect()
}

/// The same word, or one with another ending: refund and refunds, install and installation; not some and something.
fn is_akin(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    short == long || (short.len() >= 4 && long.len() <= 2 * short.len() && long.starts_with(short))
}

/// The keywords between two lines of `---` before the title, if there are any, and the rest.
fn split_front(text: &str) -> (Vec<String>, &str) {
    let front = text.strip_prefix("---\n").and_then(|inside| inside.split_once("\n---\n"));
    let Some((front, rest)) = front else { return (Vec::new(), text) };
    let keywords = front.lines().find_map(|line| line.strip_prefix("keywords:"));
    (keywords.map(words_of).unwrap_or_default(), rest)
}

fn read(id: &str, text: &str, contact: &str) -> Result<Article, String> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (keywords, text) = split_front(text.trim_start());
    let text = text.trim_start();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let title = first.strip_prefix("# ").map(str::trim).filter(|title| !title.is_empty());
    let title = title.ok_or_else(|| format!("the article {id:?} does not begin with a title: # Title"))?;
    let text = rest.trim().replace(CONTACT, contact);
    Ok(Article { id: id.into(), title: title.into(), text, keywords })
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
            ("roaming", "trouble/no-data"),
            ("eSIM not installing", "trouble/activation"),
            ("cannot connect", "trouble/no-data"),
            ("is my Pixel compatible", "devices/compatibility"),
            ("how do I get my money back", "policy/refunds"),
            ("cancel my order", "policy/refunds"),
            ("apple", "install/ios"),
            ("Pixel", "install/android"),
            ("set it up on a Xiaomi", "install/other-makers"),
            ("hotspot", "devices/compatibility"),
            ("Can I use it on two phones?", "devices/compatibility"),
            ("do I keep my number for WhatsApp", "trouble/no-data"),
            ("slow internet", "trouble/no-data"),
            ("QR code cannot be scanned", "trouble/activation"),
            ("when does it expire", "trouble/activation"),
            ("talk to a human", "support/contact"),
        ] {
            assert_eq!(library.search(topic)[0].id, first, "{topic}");
        }
        for nothing in ["  ", "how do I", "eSIM"] {
            assert_eq!(library.search(nothing).len(), BUILT_IN.len(), "{nothing}");
        }
        let unknown: Vec<&str> = library.search("zzzz").iter().map(|article| article.id.as_str()).collect();
        assert_eq!(unknown, [LAST_RESORT], "an answer is better than none");
        assert!(library.article("support/contact").unwrap().text.contains("help@shop.example"));
        assert!(library.articles().iter().all(|article| !article.text.contains("{{")));
    }

    #[test]
    fn articles_with_every_word_are_found() {
        let library = Library::load(None, None).unwrap();
        let found = |text: &str| {
            let found = library.with_every_word(&telling_words(text));
            found.iter().map(|article| article.id.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert!(found("refund").starts_with("policy/refunds"), "{}", found("refund"));
        assert!(found("refu").starts_with("policy/refunds"), "the beginning of a word: {}", found("refu"));
        assert!(
            found("Samsung").starts_with("install/samsung"),
            "the title comes first: {}",
            found("Samsung")
        );
        assert!(found("samsung refund").is_empty() && found("zzzz").is_empty());
        assert_eq!(library.with_every_word(&[]).len(), BUILT_IN.len());
        let devices: Vec<&str> = library.about("devices").map(|article| article.id.as_str()).collect();
        assert_eq!(devices, ["devices/compatibility"]);
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
        fs::write(folder.join("vat.md"), "---\r\nkeywords: tax, Invoice\r\n---\r\n# VAT\r\nNone.").unwrap();
        let library = Library::load(Some(&folder), None).unwrap();
        let vat = library.article("vat").unwrap();
        assert_eq!((vat.title.as_str(), vat.text.as_str()), ("VAT", "None."));
        assert_eq!(library.search("invoices")[0].id, "vat", "found by what people call it");
        fs::write(folder.join("vat.md"), "None.").unwrap();
        assert!(Library::load(Some(&folder), None).err().unwrap().contains("\"vat\""));
        fs::write(folder.join("vat.md"), "# VAT").unwrap();
        fs::write(folder.join("Bad Name.md"), "# Bad").unwrap();
        assert!(Library::load(Some(&folder), None).err().unwrap().contains("Bad Name.md"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(Library::load(Some(&folder), None).is_err());
    }
}
