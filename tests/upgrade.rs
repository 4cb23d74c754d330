//! Manifests of version 2 become version 3: all or none are fit, each is replaced at once, and a call that stopped is completed
//! by the next.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/cache_files.rs"]
mod cache_files;
#[path = "support/reading.rs"]
mod reading;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cache_files::{CacheFiles, temp_dir};
use dataset_rt::cancel::{PlainWaiter, Waiter};
use dataset_rt::dataset::Dataset;
use dataset_rt::error::{Error, Result};
use dataset_rt::format::manifest::{FormatVersion, Manifest};
use dataset_rt::fs::Operation;
use dataset_rt::fs::fault::{Fault, When, arm};
use dataset_rt::upgrade::{ManifestStatus, ManifestUpdate, StoppedUpdate};
use reading::{in_order, message, open, pass_ids, try_open, validated};

/// Caches of version 2.
fn caches<const N: usize>(base: &Path, names: [&str; N]) -> Vec<PathBuf> {
    names.map(|name| CacheFiles { version_3: false, ..CacheFiles::new(name, 3, |_| 3) }.write(base)).to_vec()
}

fn manifest_of(cache: &Path) -> Manifest {
    let path = cache.join("manifest.json");
    Manifest::parse(&path, &fs::read(&path).unwrap()).unwrap()
}

fn versions(paths: &[PathBuf]) -> Vec<FormatVersion> {
    paths.iter().map(|path| manifest_of(path).version).collect()
}

fn update(dataset: &Dataset) -> ManifestUpdate {
    dataset.update_manifests(&mut PlainWaiter::default()).unwrap()
}

/// Path, id and status of every entry; the paths are those of the caches in their order.
fn told(update: ManifestUpdate, paths: &[PathBuf]) -> Vec<(u64, ManifestStatus)> {
    let entries = update.unwrap();
    let manifests: Vec<PathBuf> = paths.iter().map(|path| path.join("manifest.json")).collect();
    assert_eq!(entries.iter().map(|entry| entry.path.clone()).collect::<Vec<_>>(), manifests);
    entries.iter().map(|entry| (entry.cache_id.0, entry.status)).collect()
}

fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Does something each time it is asked between two manifests.
struct Between<F>(F);

impl<F: FnMut() -> Result<()>> Waiter for Between<F> {
    fn wait(&mut self, done: &mut (dyn FnMut(Duration) -> bool + Send)) -> Result<()> {
        while !done(Duration::from_secs(1)) {}
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.0()
    }
}

#[test]
fn e01_positions_become_ids_and_a_second_call_changes_nothing() {
    use ManifestStatus::{Unchanged, Updated};
    let base = temp_dir();
    let mut paths = caches(base.path(), ["c", "a"]);
    paths.push(CacheFiles::new("new", 2, |_| 1).write(base.path()));
    let new_id = manifest_of(&paths[2]).cache_id.unwrap().0;
    let new_bytes = fs::read(paths[2].join("manifest.json")).unwrap();
    let files = names_in(&paths[0]);

    let dataset = open(&paths, in_order());
    let other = open(&paths, in_order());
    let before = pass_ids(&dataset);
    assert_eq!(told(update(&dataset), &paths), [(0, Updated), (1, Updated), (new_id, Unchanged)]);
    let migrated: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path.join("manifest.json")).unwrap()).collect();
    assert_eq!(told(update(&dataset), &paths), [(0, Unchanged), (1, Unchanged), (new_id, Unchanged)]);
    // A dataset that was opened before the update is told the same.
    assert_eq!(told(update(&other), &paths), [(0, Unchanged), (1, Unchanged), (new_id, Unchanged)]);
    let after: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path.join("manifest.json")).unwrap()).collect();
    assert_eq!((after, &migrated[2]), (migrated.clone(), &new_bytes));
    assert_eq!(names_in(&paths[0]), files);

    // In another order, and verified, every cache still has its id.
    paths.reverse();
    let reopened = open(&paths, validated());
    let mut again = pass_ids(&reopened);
    again.sort_unstable();
    let mut before = before;
    before.sort_unstable();
    assert_eq!(again, before);
    assert_eq!(pass_ids(&dataset).len(), 8);
}

/// Values that nobody here knows, as somebody may have spelled them.
const STRANGE: [&str; 6] = [
    r#"{"é": [1e400, 123456789012345678901234567890, -0.0, 1.50, 1E+2, null], "z": 1, "a": 2}"#,
    r#"{"twice": 1, "twice": {"twice": 2, "twice": 3}, "twice": 1}"#,
    r#""\ud800 \u00e9 \/ \udc00\ud83d\ude00 \u0000 é""#,
    "[ ]",
    "{\r\n\t\"manifest_checksum\"\t:\r\n[ 1 ,2]\n}",
    "-0",
];

#[test]
fn e01_what_is_unknown_in_a_manifest_is_kept_as_it_is_spelled() {
    let base = temp_dir();
    let paths = caches(base.path(), ["a"]);
    let path = paths[0].join("manifest.json");
    let mut text = fs::read_to_string(&path).unwrap();
    let mut change = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} in {text}");
        text = text.replacen(from, to, 1);
        text.clone()
    };
    // These two have no meaning in version 2, and may be anything.
    change("\"cache_id\": ", "\"cache\\u005fid\": [\"\\ud800\", 1], \"dropped\": ");
    change("\"manifest_checksum\": ", "\"manifest\\u005fchecksum\": {}, \"kept\": ");
    change("\"format_version\"", "\"format\\u005fversion\"");
    change("\"source_name\": \"a\"", "\"source\\u005fname\" : \"\\u0061\"");
    change("\"algo\": \"none\"", &format!("\"more\": {}, \"algo\": \"none\"", STRANGE[1]));
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let values = STRANGE.into_iter().chain([deep.as_str()]).enumerate();
    let entries: Vec<String> = values.map(|(number, value)| format!("\"k\\u00e9y {number}\": {value}")).collect();
    let text = change("\"shards\"", &format!("{},\n  \"shards\"", entries.join(" , ")));
    fs::write(&path, &text).unwrap();
    let dataset = open(&paths, in_order());
    told(update(&dataset), &paths);

    let written = fs::read_to_string(&path).unwrap();
    let head = "{\n  \"format\\u005fversion\": 3,\n  \"cache_id\": 0,\n  \"dropped\": ";
    assert!(written.starts_with(head), "{written}");
    assert!(written.contains(",\n  \"source\\u005fname\": \"\\u0061\",\n  \"sample_count\": 3,\n"), "{written}");
    assert!(written.contains(&format!(",\n  {},\n  \"shards\": [\n", entries.join(",\n  "))), "{written}");
    // Values of known keys, with what is in them, are as they were too.
    let shards = |text: &str| text.split_once("\"shards\"").unwrap().1.split_once("\n  ],").unwrap().0.to_owned();
    assert_eq!(shards(&written), shards(&text));
    assert!(!written.contains("[\"\\ud800\", 1]") && !written.contains("\"manifest\\u005fchecksum\""), "{written}");
    Manifest::verify_checksum(&path, written.as_bytes()).unwrap();
    assert!(Manifest::verify_checksum(&path, written.replace("ud800", "ud801").as_bytes()).is_err());
    assert_eq!(pass_ids(&open(&paths, validated())), pass_ids(&dataset));
}

#[test]
fn e01_a_manifest_keeps_its_mode() {
    let base = temp_dir();
    let paths = caches(base.path(), ["a", "b", "c"]);
    let modes = [0o640, 0o606, 0o444];
    for (path, mode) in paths.iter().zip(modes) {
        fs::set_permissions(path.join("manifest.json"), fs::Permissions::from_mode(mode)).unwrap();
    }
    told(update(&open(&paths, in_order())), &paths);
    let found =
        paths.iter().map(|path| fs::metadata(path.join("manifest.json")).unwrap().permissions().mode() & 0o7777);
    assert_eq!(found.collect::<Vec<_>>(), modes);
}

#[test]
fn e01_a_manifest_keeps_owner_and_group_where_they_may_be_given() {
    let base = temp_dir();
    let paths = caches(base.path(), ["a", "b", "c", "d"]);
    let manifests: Vec<PathBuf> = paths.iter().map(|path| path.join("manifest.json")).collect();
    let owners = [(1, 2), (65534, 0), (0, 65533), (0, 0)];
    for (path, (owner, group)) in manifests.iter().zip(owners) {
        if std::os::unix::fs::chown(path, Some(owner), Some(group)).is_err() {
            eprintln!("skipped: only the superuser may give files away");
            return;
        }
    }
    let owner_of = |path: &PathBuf| {
        let found = fs::metadata(path).unwrap();
        (found.uid(), found.gid(), found.permissions().mode() & 0o7777)
    };
    fs::set_permissions(&manifests[0], fs::Permissions::from_mode(0o640)).unwrap();
    let before: Vec<_> = manifests.iter().map(owner_of).collect();
    told(update(&open(&paths, in_order())), &paths);
    assert_eq!(versions(&paths), [FormatVersion::V3; 4]);
    assert_eq!(manifests.iter().map(owner_of).collect::<Vec<_>>(), before);
}

#[test]
fn e01_an_owner_that_cannot_be_given_stops_nothing() {
    for errno in [libc::EPERM, libc::EINVAL, libc::EOPNOTSUPP] {
        let base = temp_dir();
        let paths = caches(base.path(), ["a"]);
        let armed = arm(base.path(), &[(When::Every(Operation::SetOwner), Fault::Fail(errno))]);
        told(update(&open(&paths, in_order())), &paths);
        // With its owner first, then its group alone.
        assert_eq!(armed.seen().iter().filter(|(operation, _)| *operation == Operation::SetOwner).count(), 2);
    }
}

#[test]
fn e01_nothing_is_replaced_unless_all_are_fit() {
    let base = temp_dir();
    let paths = caches(base.path(), ["a", "b", "c"]);
    let dataset = open(&paths, in_order());
    let path = paths[1].join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let files = names_in(&paths[0]);
    let stops = |told: &str| {
        let StoppedUpdate { path: stopped, message, entries } = update(&dataset).unwrap_err();
        assert_eq!((stopped, entries), (path.clone(), vec![]));
        assert!(message.contains(told), "{message}");
        assert_eq!(versions(&[paths[0].clone(), paths[2].clone()]), [FormatVersion::V2; 2]);
        assert_eq!(names_in(&paths[0]), files);
    };
    fs::write(&path, text.replace("\"source_name\": \"b\"", "\"source_name\": \"d\"")).unwrap();
    stops("found a changed one; open the dataset again");
    fs::write(&path, "{}").unwrap();
    stops("no key \"format_version\"");
    // Somebody gave it another identity.
    let other = text.replacen("\"format_version\": 2", "\"format_version\": 3", 1);
    fs::write(&path, other).unwrap();
    stops("found a changed one");
    fs::remove_file(&path).unwrap();
    stops("cannot open");
    // White space says nothing.
    fs::write(&path, format!("{text}\n\n")).unwrap();
    told(update(&dataset), &paths);
    assert_eq!(versions(&paths), [FormatVersion::V3; 3]);
}

#[test]
fn e01_a_stopped_update_tells_what_is_done_and_is_completed_by_the_next() {
    use ManifestStatus::{Unchanged, Updated};
    let base = temp_dir();
    let paths = caches(base.path(), ["a", "b", "c"]);
    let dataset = open(&paths, in_order());
    let (away, mut calls) = (base.path().join("away"), 0);
    let mut waiter = Between(|| {
        calls += 1;
        if calls == 2 {
            fs::rename(&paths[1], &away).unwrap();
        }
        Ok(())
    });
    let StoppedUpdate { path, message, entries } = dataset.update_manifests(&mut waiter).unwrap().unwrap_err();
    assert_eq!(path, paths[1].join("manifest.json"));
    assert!(message.contains("cannot replace"), "{message}");
    assert_eq!(entries.iter().map(|entry| (entry.cache_id.0, entry.status)).collect::<Vec<_>>(), [(0, Updated)]);
    fs::rename(&away, &paths[1]).unwrap();
    assert_eq!(versions(&paths), [FormatVersion::V3, FormatVersion::V2, FormatVersion::V2]);
    // What the failed call had prepared is gone, where it could be reached.
    assert!(names_in(&paths[2]).iter().all(|name| !name.starts_with('.')));
    assert_eq!(told(update(&dataset), &paths), [(0, Unchanged), (1, Updated), (2, Updated)]);
}

#[test]
fn e01_an_interrupted_update_is_completed_by_another_process() {
    use ManifestStatus::{Unchanged, Updated};
    let base = temp_dir();
    let paths = caches(base.path(), ["a", "b", "c"]);
    let mut calls = 0;
    let mut waiter = Between(|| {
        calls += 1;
        if calls == 3 { Err(Error::Interrupted) } else { Ok(()) }
    });
    let interrupted = open(&paths, in_order()).update_manifests(&mut waiter);
    assert!(matches!(interrupted, Err(Error::Interrupted)));
    assert_eq!(versions(&paths), [FormatVersion::V3, FormatVersion::V3, FormatVersion::V2]);
    for path in &paths {
        assert!(names_in(path).iter().all(|name| !name.starts_with('.')));
    }
    // Left by one of the same process number that was killed.
    for attempt in 0..20 {
        fs::write(paths[2].join(format!(".drt-{}-{attempt}.tmp", std::process::id())), "half").unwrap();
    }
    let reopened = open(&paths, in_order());
    assert_eq!(told(update(&reopened), &paths), [(0, Unchanged), (1, Unchanged), (2, Updated)]);
}

#[test]
fn e01_readers_find_the_old_or_the_new_manifest() {
    let base = temp_dir();
    let paths = caches(base.path(), ["a"]);
    let path = paths[0].join("manifest.json");
    let old = fs::read(&path).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = [0_u32; 2];
                    while !done.load(Ordering::Relaxed) || seen.contains(&0) {
                        let version = manifest_of(&paths[0]).version;
                        seen[usize::from(version == FormatVersion::V3)] += 1;
                        pass_ids(&open(&paths, in_order()));
                    }
                    seen
                })
            })
            .collect();
        for _ in 0..200 {
            told(update(&open(&paths, in_order())), &paths);
            // Back to version 2, as a whole as well.
            dataset_rt::fs::write_atomic(&path, &old).unwrap();
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        // Readers that have not seen both yet.
        while readers.iter().any(|reader| !reader.is_finished()) {
            told(update(&open(&paths, in_order())), &paths);
            dataset_rt::fs::write_atomic(&path, &old).unwrap();
        }
    });
}

#[test]
fn e01_caches_migrated_separately_collide_and_are_told_how_to_live_together() {
    let base = temp_dir();
    let paths = caches(base.path(), ["a", "b"]);
    for path in &paths {
        told(update(&open(std::slice::from_ref(path), in_order())), std::slice::from_ref(path));
    }
    let text = message(try_open(&paths, in_order()));
    let [a, b] = [&paths[0], &paths[1]].map(|path| path.display().to_string());
    assert!(text.contains(&format!("found 0 in both {a} and {b}; ")), "{text}");
    assert!(text.contains("migrated in separate calls") && text.contains("write one of them again"), "{text}");

    // One that was not migrated can be passed at another position.
    let paths = [paths[0].clone(), caches(base.path(), ["d"])[0].clone()];
    assert_eq!(pass_ids(&open(&paths, in_order())).len(), 6);
    let text = message(try_open(&[paths[1].clone(), paths[0].clone()], in_order()));
    assert!(text.contains("pass it at another position"), "{text}");
    let text = message(try_open(&[paths[0].clone(), paths[0].clone()], in_order()));
    assert!(text.ends_with("pass each cache once"), "{text}");

    let twins = ["one", "two"].map(|directory| {
        let directory = base.path().join(directory);
        fs::create_dir(&directory).unwrap();
        CacheFiles::new("same", 2, |_| 1).write(&directory)
    });
    let text = message(try_open(&twins, in_order()));
    assert!(text.contains("give sources different names"), "{text}");
}

#[test]
fn e01_whatever_operation_fails_the_next_call_completes_it() {
    let mut seen_kinds = std::collections::HashSet::new();
    for number in 0.. {
        let base = temp_dir();
        let paths = caches(base.path(), ["a", "b", "c"]);
        let dataset = open(&paths, in_order());
        let armed = arm(base.path(), &[(When::At(number), Fault::Fail(libc::EIO))]);
        let outcome = update(&dataset);
        let Some((operation, path)) = armed.seen().get(number).cloned() else { break };
        drop(armed);
        seen_kinds.insert(operation);
        let done = versions(&paths).into_iter().filter(|version| *version == FormatVersion::V3).count();
        match outcome {
            Ok(entries) => {
                assert_eq!((operation, done), (Operation::SyncDir, 3));
                let unknown = entries.iter().filter(|entry| entry.status == ManifestStatus::DurabilityUnknown);
                let unknown: Vec<&Path> = unknown.map(|entry| entry.path.parent().unwrap()).collect();
                assert_eq!(unknown, [path.as_path()]);
            }
            Err(StoppedUpdate { path: stopped, message, entries }) => {
                assert_ne!(operation, Operation::SyncDir);
                assert_eq!(stopped.parent(), path.parent(), "{operation:?}");
                assert!(message.contains("Input/output error"), "{operation:?}: {message}");
                assert_eq!(entries.len(), done, "{operation:?}");
                assert_eq!(operation == Operation::Rename, stopped == path, "{operation:?} of {}", path.display());
                assert!(done == 0 || operation == Operation::Rename, "{operation:?} after {done}");
            }
        }
        for path in &paths {
            assert!(names_in(path).iter().all(|name| !name.starts_with('.')), "{operation:?}");
        }
        told(update(&open(&paths, in_order())), &paths);
        assert_eq!(paths.iter().map(|path| manifest_of(path).cache_id.unwrap().0).collect::<Vec<_>>(), [0, 1, 2]);
    }
    assert_eq!(seen_kinds.len(), 7, "{seen_kinds:?}");
}
