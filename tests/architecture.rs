//! Who may know whom: the tables of CONTRIBUTING.md, held against the paths that the sources under `src/` name.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longest source file, in lines: one that outgrows it has more than one job.
const MAX_LINES: usize = 400;

#[test]
fn modules_know_only_whom_the_table_allows() {
    let table = Table::of_contributing();
    let mut faults = Vec::new();
    for source in sources() {
        if source.module.is_empty() {
            continue;
        }
        let Some(allowed) = table.allowed(&source.module) else {
            faults.push(format!("{}: module {} is in no row of CONTRIBUTING.md", source.name(), source.module[0]));
            continue;
        };
        for known in known_modules(&source.text, &source.module) {
            if known != source.module[0] && !allowed.contains(&known) {
                faults.push(format!("{}: must not know crate::{known}", source.name()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn crates_are_known_only_where_the_table_allows() {
    let confined = Table::of_contributing().crates;
    let mut faults = Vec::new();
    for source in sources() {
        let code = without_comments_and_text(&source.text);
        for (name, modules) in &confined {
            let allowed = modules.iter().any(|path| is_under(&source.module, path));
            if !allowed && paths_from(&code, name).next().is_some() {
                faults.push(format!("{}: must not know the crate {name}", source.name()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What changes a disk, as it is written in code. Tests inject faults into the functions of `fs`, so nothing may pass them by.
const CHANGES: [&str; 11] = [
    ".write(true)",
    ".append(true)",
    ".sync_all(",
    ".sync_data(",
    "File::create",
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "fs::remove_",
    "std::fs::create_dir",
    "hard_link(",
];

#[test]
fn disks_are_changed_by_fs_only() {
    let mut faults = Vec::new();
    for source in sources() {
        let code = without_comments_and_text(&source.text);
        let code =
            code.split("#[cfg(test)]").next().unwrap_or_default().replace("NewFile", "").replace("TemporaryFile", "");
        let changes = CHANGES.iter().filter(|change| code.contains(**change));
        if !is_under(&source.module, "fs") {
            faults.extend(changes.map(|change| format!("{}: must leave {change} to fs", source.name())));
        } else if source.module != ["fs", "operation"] {
            let past = changes.filter(|change| !change.starts_with("std"));
            faults.extend(past.map(|change| format!("{}: must leave {change} to fs::operation", source.name())));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn files_are_short_and_say_their_job_first() {
    let mut faults = Vec::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if lines > MAX_LINES {
            faults.push(format!("{}: {lines} lines, at most {MAX_LINES}", source.name()));
        }
        if !source.text.starts_with("//!") {
            faults.push(format!("{}: the first line must be a //! comment that says the job", source.name()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_module_of_the_table_exists() {
    let present: BTreeSet<String> = sources().into_iter().filter_map(|source| source.module.first().cloned()).collect();
    let listed: BTreeSet<String> =
        Table::of_contributing().rows.keys().filter_map(|path| path.split("::").next().map(str::to_owned)).collect();
    assert_eq!(listed, present);
}

#[test]
fn every_dependency_is_used_and_has_its_reason_written_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let reasons = fs::read_to_string(root.join("docs/decisions/0001-dependencies.md")).unwrap();
    let reasons: BTreeSet<String> = reasons.lines().flat_map(quoted).collect();
    let code: Vec<String> = sources().iter().map(|source| without_comments_and_text(&source.text)).collect();
    let section = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let names = section.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once(" = "));
    let mut faults = Vec::new();
    for (name, _) in names {
        let path = name.replace('-', "_");
        if !code.iter().any(|code| paths_from(code, &path).next().is_some()) {
            faults.push(format!("Cargo.toml: {name} is not used under src/"));
        }
        if !reasons.contains(name) {
            faults.push(format!("docs/decisions/0001-dependencies.md: no reason for {name}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_core_needs_no_python() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--edges", "normal,build", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(tree.lines().any(|line| line.starts_with("blake3 ")), "not a dependency tree:\n{tree}");
    let python: Vec<&str> = tree.lines().filter(|line| line.contains("pyo3") || line.contains("numpy")).collect();
    assert!(python.is_empty(), "without features the crate depends on {python:?}");
}

#[test]
fn paths_are_found_in_every_spelling() {
    let text = r#"
        //! Not crate::comment, not [`crate::doc`].
        use crate::{error::{Error, Result}, ids, value as other};
        use super::super::pool::Task;
        pub(crate) fn f(x: &crate::cancel::CancelToken) { let _ = "crate::text"; /* crate::block */ }
        pub(in crate::writer) struct S<'a>(&'a u8, char);
        const QUOTE: char = '"'; use mycrate::nothing; use $crate::macros;
    "#;
    let found: Vec<String> = known_modules(text, &["writer".into(), "shards".into()]).into_iter().collect();
    assert_eq!(found, ["cancel", "error", "ids", "macros", "pool", "value", "writer"]);
}

#[test]
fn super_of_a_top_level_module_is_the_crate() {
    let found = |module: &[&str]| -> Vec<String> {
        let module: Vec<String> = module.iter().map(|&part| part.to_owned()).collect();
        known_modules("use super::pool;", &module).into_iter().collect()
    };
    assert_eq!(found(&["fs"]), ["pool"]);
    assert_eq!(found(&["format", "index"]), ["format"]);
}

/// One file under `src/`.
struct Source {
    path: PathBuf,
    /// Its module path; empty for `lib.rs`.
    module: Vec<String>,
    text: String,
}

impl Source {
    fn name(&self) -> String {
        self.path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string()
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let inside = path.strip_prefix(&root).unwrap().with_extension("");
                let module = inside.iter().map(|part| part.to_str().unwrap().to_owned());
                let module = module.filter(|part| part != "mod" && part != "lib").collect();
                let text = fs::read_to_string(&path).unwrap();
                found.push(Source { path, module, text });
            }
        }
    }
    found
}

/// What CONTRIBUTING.md says, with its groups written out.
struct Table {
    /// Module path -> the modules that it may know.
    rows: BTreeMap<String, BTreeSet<String>>,
    /// External crate -> the modules that may know it.
    crates: BTreeMap<String, Vec<String>>,
}

impl Table {
    fn of_contributing() -> Self {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("CONTRIBUTING.md")).unwrap();
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut pending = Vec::new();
        for cells in rows_below(&text, "| group |") {
            let modules = quoted(&cells[1]);
            groups.insert(cells[0].clone(), modules.clone());
            pending.push((modules, cells[3].clone()));
        }
        let mut rows = BTreeMap::new();
        for (modules, knows) in pending {
            let mut allowed = BTreeSet::new();
            for group in knows.split(',').map(str::trim).filter(|group| !group.is_empty()) {
                let members = groups.get(group).unwrap_or_else(|| panic!("CONTRIBUTING.md: no group named {group}"));
                allowed.extend(members.iter().filter_map(|path| path.split("::").next().map(str::to_owned)));
            }
            rows.extend(modules.into_iter().map(|module| (module, allowed.clone())));
        }
        let confined = rows_below(&text, "| crate |").into_iter();
        let crates: BTreeMap<_, _> = confined.map(|cells| (quoted(&cells[0]).remove(0), quoted(&cells[1]))).collect();
        assert!(!rows.is_empty() && !crates.is_empty(), "CONTRIBUTING.md lacks its tables");
        Self { rows, crates }
    }

    /// What the row with the longest path that covers `module` allows.
    fn allowed(&self, module: &[String]) -> Option<&BTreeSet<String>> {
        let covering = self.rows.iter().filter(|(path, _)| is_under(module, path));
        covering.max_by_key(|(path, _)| path.len()).map(|(_, allowed)| allowed)
    }
}

fn is_under(module: &[String], path: &str) -> bool {
    let path: Vec<&str> = path.split("::").collect();
    module.len() >= path.len() && module.iter().zip(&path).all(|(have, want)| have == want)
}

/// The cells of the Markdown table whose heading starts with `heading`.
fn rows_below(text: &str, heading: &str) -> Vec<Vec<String>> {
    let rows =
        text.lines().skip_while(|line| !line.starts_with(heading)).skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// What stands between back quotes.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Top-level modules of the crate that `text`, the source of `module`, names.
fn known_modules(text: &str, module: &[String]) -> BTreeSet<String> {
    let code = without_comments_and_text(text);
    let mut known: BTreeSet<String> = paths_from(&code, "crate").flat_map(first_names).collect();
    for mut rest in paths_from(&code, "super") {
        let mut depth = 1;
        while let Some(outer) = rest.strip_prefix("super::") {
            rest = outer;
            depth += 1;
        }
        if depth < module.len() {
            known.insert(module[0].clone());
        } else if depth == module.len() {
            known.extend(first_names(rest));
        }
    }
    known
}

/// What follows each `root::` in `code`, where `root` begins a path.
fn paths_from<'a>(code: &'a str, root: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(root).filter_map(move |(at, _)| {
        let continues_a_name = |character: char| character.is_alphanumeric() || character == '_' || character == ':';
        let begins = !code[..at].ends_with(continues_a_name);
        let rest = code[at + root.len()..].trim_start().strip_prefix("::")?;
        begins.then(|| rest.trim_start())
    })
}

/// First names of a use tree: one for a path, several for a group in braces.
fn first_names(tree: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = tree.strip_prefix('{') else { return vec![name(tree)] };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(group[start..at].trim_start()));
                start = at + 1;
                if character == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// `text` with comments and string literals blanked, so that only code names paths.
fn without_comments_and_text(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(quote) = ["'\"'", "'\\\"'"].iter().find(|quote| rest.starts_with(**quote)) {
            quote.len()
        } else if character == '"' {
            text_literal_len(rest)
        } else {
            code.push(character);
            rest = &rest[character.len_utf8()..];
            continue;
        };
        code.push(' ');
        rest = &rest[skipped..];
    }
    code
}

/// Bytes of the string literal that `text` starts with, quotes included.
fn text_literal_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
