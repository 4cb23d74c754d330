//! A sound cache after any sequence of edits to its files: each is a file, what to do, where, and with which byte.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((compressed, edits)) = bytes.split_first() else { return };
    let cache = dataset_rt_fuzz::cache(compressed % 2 == 1);
    let mut files: Vec<Vec<u8>> = (0..dataset_rt_fuzz::FILES.len()).map(|file| cache.sound(file).to_vec()).collect();
    let mut touched = vec![false; files.len()];
    for edit in edits.as_chunks::<5>().0 {
        let [file, action, high, low, byte] = *edit;
        let number = usize::from(file) % files.len();
        let file = &mut files[number];
        let at = usize::from(u16::from_be_bytes([high, low])) % (file.len() + 1);
        touched[number] = true;
        match action % 5 {
            0 => file.truncate(at),
            1 => file.insert(at, byte),
            2 => drop((at < file.len()).then(|| file.remove(at))),
            3 => file.iter_mut().skip(at).take(1).for_each(|place| *place ^= byte.max(1)),
            _ => file.iter_mut().skip(at).take(8).for_each(|place| *place = byte),
        }
    }
    let damaged: Vec<(usize, &[u8])> = files
        .iter()
        .enumerate()
        .filter(|(number, _)| touched[*number])
        .map(|(number, file)| (number, &**file))
        .collect();
    cache.check(&damaged);
});
