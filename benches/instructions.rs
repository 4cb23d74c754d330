//! A guard against regressions: counts the processor's instructions for one sample, which do not depend on what else a
//! machine does, and fails where they are far above what they were.
//!
//! It runs itself under `valgrind --tool=callgrind`, each case with two lengths; the difference leaves out what opening costs.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that says what it found")]

#[path = "../tests/support/mod.rs"]
#[allow(unused, reason = "only part of it is used")]
mod support;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use dataset_rt::cancel::PlainWaiter;
use dataset_rt::dataset::Dataset;
use dataset_rt::error::{Error, Result};
use dataset_rt::ids::SampleId;
use dataset_rt::reader::ReaderConfig;
use dataset_rt::runtime::Runtime;
use dataset_rt::value::MetadataValue;

/// Samples of a cache.
const ROWS: u32 = 20_000;

/// Samples that are read in the two runs of a case: the first ones until a reader believes that all is in memory.
const RUNS: [u32; 2] = [40_000, 60_000];

/// How many times what was measured a case may take: other compilers and processors make other code.
const MARGIN: f64 = 1.5;

struct Case {
    name: &'static str,
    payload_bytes: usize,
    read: fn(&Dataset, u64) -> Result<()>,
    shuffle: bool,
    /// Instructions for a sample, as measured with the profile `quick` on x86-64.
    measured: f64,
}

const CASES: [Case; 5] = [
    Case { name: "64 B, in order", payload_bytes: 64, read: in_order, shuffle: false, measured: 1_010.0 },
    Case { name: "64 B, shuffled", payload_bytes: 64, read: in_order, shuffle: true, measured: 1_820.0 },
    Case { name: "64 B, get_item", payload_bytes: 64, read: by_id, shuffle: false, measured: 1_210.0 },
    Case { name: "1 KiB, in order", payload_bytes: 1 << 10, read: in_order, shuffle: false, measured: 1_250.0 },
    Case { name: "1 KiB, shuffled", payload_bytes: 1 << 10, read: in_order, shuffle: true, measured: 2_070.0 },
];

fn in_order(dataset: &Dataset, count: u64) -> Result<()> {
    dataset.set_epoch_len(count)?;
    let mut stream = dataset.samples::<Vec<u8>>()?;
    while let Some(chunk) = stream.next_chunk(&mut PlainWaiter::default())? {
        for taken in chunk {
            let fetched = taken.read(stream.caches());
            let cache = stream.caches().cache(fetched.place.cache)?;
            for column in 0..3 {
                black_box(cache.value(column, fetched.place.row)?);
            }
            black_box(fetched.payload.map_err(|error| *error)?);
        }
    }
    Ok(())
}

fn by_id(dataset: &Dataset, count: u64) -> Result<()> {
    let cache_id = dataset.caches()?.cache(0)?.id();
    for step in 0..count {
        // Far apart: a multiple of a number that has no factor in common with the rows.
        let row = step.wrapping_mul(7_919) % u64::from(ROWS);
        black_box(dataset.get_item::<Vec<u8>>(cache_id, SampleId(row), &mut PlainWaiter::default())?);
    }
    Ok(())
}

fn write(base: &Path, payload_bytes: usize) -> PathBuf {
    let samples = (0..ROWS).map(|row| {
        let metadata = [
            ("label", MetadataValue::Int(i64::from(row))),
            ("score", MetadataValue::Float(0.5)),
            ("split", MetadataValue::String(format!("split {:04}", row % 1000))),
        ];
        support::sample(vec![7; payload_bytes], &metadata)
    });
    support::write_cache(base, &payload_bytes.to_string(), samples, &support::config())
}

/// What is counted: opens a cache and reads so many samples.
fn read(case: &Case, path: PathBuf, count: u64) -> Result<()> {
    let runtime = Runtime::new(1)?;
    let config = ReaderConfig { shuffle: case.shuffle, ..ReaderConfig::new(1) };
    (case.read)(&runtime.open(&[path], config, &mut PlainWaiter::default())?, count)
}

fn instructions(case: &Case, path: &Path, count: u32) -> Result<f64> {
    let failed = |reason: String| Error::InvalidValue(format!("{}: {reason}", case.name));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    let output = command.arg(case.name).arg(path).arg(count.to_string()).output();
    let output = output.map_err(|error| failed(format!("cannot run valgrind: {error}; install it")))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :")).filter(|_| output.status.success());
    let total = collected.and_then(|(_, number)| number.trim().parse().ok());
    total.ok_or_else(|| failed(format!("no count of instructions: {text}")))
}

fn check() -> Result<bool> {
    let base = support::temp_dir();
    let paths = [64, 1 << 10].map(|payload_bytes| (payload_bytes, write(base.path(), payload_bytes)));
    let mut fine = true;
    for case in &CASES {
        let path = paths.iter().find(|(payload_bytes, _)| *payload_bytes == case.payload_bytes);
        let Some((_, path)) = path else { continue };
        let [short, long] = RUNS.map(|count| instructions(case, path, count));
        let each = (long? - short?) / f64::from(RUNS[1] - RUNS[0]);
        let ratio = each / case.measured;
        fine &= ratio <= MARGIN;
        println!("{:16} {each:6.0} instructions a sample, {ratio:.2} of what was measured", case.name);
    }
    Ok(fine)
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().collect();
    let outcome = match arguments.as_slice() {
        [_, name, path, count] => {
            let case = CASES.iter().find(|case| case.name == name);
            let count = count.parse().ok();
            case.zip(count).map_or(Ok(false), |(case, count)| read(case, PathBuf::from(path), count).map(|()| true))
        }
        _ => check(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!(
                "more than {MARGIN} times what was measured: see docs/performance.md, or measure anew what has to cost more"
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
