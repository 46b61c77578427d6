//! Why a SQLite database cannot be used, and what to do about it. The operator must change something: exit 2.

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::error::Error;

const ELSEWHERE: &str = "or name another file with --database-url sqlite:PATH";

/// What the system says about the file, its folder or a file beside it.
pub fn by_system(path: &Path, error: &io::Error) -> Error {
    let (shown, folder) = (path.display(), folder(path).display());
    Error::settings(match error.kind() {
        ErrorKind::NotFound => {
            format!(
                "the database {shown} cannot be made: there is no folder {folder}. Make it (mkdir -p {folder}), {ELSEWHERE}"
            )
        }
        ErrorKind::NotADirectory => {
            format!(
                "the database {shown} cannot be made: {folder} is no folder. Name another file with --database-url sqlite:PATH"
            )
        }
        ErrorKind::IsADirectory => {
            format!("the database {shown} is a folder. Name a file with --database-url sqlite:PATH")
        }
        ErrorKind::PermissionDenied => {
            format!(
                "the database {shown} may not be written by this user. Give the user who runs simgate the right to write \
                 to it and to its folder {folder}, {ELSEWHERE}"
            )
        }
        ErrorKind::ReadOnlyFilesystem => {
            format!(
                "the database {shown} is on a disk that cannot be written. Mount it for writing, {ELSEWHERE}"
            )
        }
        _ => return Error::fault(format!("{shown}: {error}")),
    })
}

/// A file that SQLite does not know.
pub fn no_database(path: &Path) -> Error {
    Error::settings(format!("{} is no SQLite database. Move it away, {ELSEWHERE}", path.display()))
}

/// A file that SQLite cannot open, for a reason that it does not tell.
pub fn closed(path: &Path) -> Error {
    Error::settings(format!(
        "the database {} cannot be opened. Check that it is a file and that this user may read and write it and its folder, \
         {ELSEWHERE}",
        path.display()
    ))
}

/// A SQLite database with tables that are none of ours.
pub fn foreign(path: &Path) -> Error {
    Error::settings(format!(
        "{} is the database of another program. Move it away, {ELSEWHERE}",
        path.display()
    ))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Fault, FaultKind};

    #[test]
    fn the_remedy_is_told() {
        let path = Path::new("/srv/shop/gate.db");
        for (kind, told) in [
            (ErrorKind::NotFound, "mkdir -p /srv/shop"),
            (ErrorKind::NotADirectory, "/srv/shop is no folder"),
            (ErrorKind::IsADirectory, "is a folder"),
            (ErrorKind::PermissionDenied, "the right to write to it and to its folder /srv/shop"),
            (ErrorKind::ReadOnlyFilesystem, "Mount it for writing"),
        ] {
            let Error::Fault(Fault { what, kind: fault }) = by_system(path, &kind.into()) else {
                panic!("{kind}")
            };
            assert!(
                what.contains(told) && what.contains("/srv/shop/gate.db") && what.contains("--database-url"),
                "{what}"
            );
            assert_eq!(fault, FaultKind::Settings);
        }
        assert!(
            by_system(Path::new("gate.db"), &ErrorKind::NotFound.into()).to_string().contains("folder .")
        );
    }
}
