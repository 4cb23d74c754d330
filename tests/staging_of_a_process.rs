//! Unfinished caches of a process that was killed are removed by whoever watched over it, and nothing else is.

use std::fs;

use dataset_rt::fs::{STAGING_DIR, Staging, StagingStamp, remove_staging_of};

#[test]
fn c11_only_the_staging_of_the_process_is_removed() {
    let base = tempfile::tempdir().unwrap();
    let mine = Staging::create(base.path()).unwrap();
    let stamped = mine.path().file_name().unwrap().to_str().unwrap();
    let StagingStamp { host, boot, process_space, process, started } = StagingStamp::parse(stamped).unwrap();

    let other = process + 1;
    let name =
        |host: &str, boot: &str, space: &str, process: u32| format!("{host}~{boot}~{space}~{process}~{started}~0-0");
    let dead = [name(&host, &boot, &process_space, other), format!("{host}~{boot}~{process_space}~{other}~1~0-1")];
    let alive = [
        stamped.to_owned(),
        name("elsewhere", &boot, &process_space, other),
        name(&host, "earlier", &process_space, other),
        name(&host, &boot, "1", other),
        format!("{other}"),
    ];
    let directory = base.path().join(STAGING_DIR);
    for name in dead.iter().chain(&alive[1..]) {
        fs::create_dir_all(directory.join(name).join("shards")).unwrap();
        fs::write(directory.join(name).join("shards/000000.bin"), "bytes").unwrap();
    }

    remove_staging_of(base.path(), other).unwrap();

    let mut left: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    let mut expected = alive.to_vec();
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn c11_nothing_to_remove_is_no_error() {
    let base = tempfile::tempdir().unwrap();
    remove_staging_of(base.path(), 1).unwrap();
    remove_staging_of(base.path().join("absent"), 1).unwrap();
}
