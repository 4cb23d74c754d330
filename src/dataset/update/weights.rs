//! Rules for weights, and one buffer for all of them.

use arrow_array::Float64Array;
use arrow_array::types::Float64Type;
use arrow_buffer::ScalarBuffer;

use super::columns::Numbers;
use super::{Origin, Work};
use crate::cancel::Waiter;
use crate::dataset::metadata::WEIGHT;
use crate::error::{Error, Result};
use crate::memory::with_room;
use crate::pool::map_blocks;

/// Every weight is positive and finite, and so is their sum.
pub(super) fn check(work: &Work<'_>, weights: &[Float64Array], waiter: &mut dyn Waiter) -> Result<()> {
    let sums = map_blocks(work.pool, waiter, work.blocks.len(), &|number, cancel| {
        cancel.check()?;
        let Some(block) = work.blocks.get(number) else { return Ok(0.0) };
        let values = weights.get(block.batch).and_then(|weights| weights.values().get(block.rows.clone()));
        let values = values.unwrap_or_default();
        match values.iter().position(|weight| !is_weight(*weight)) {
            None => Ok(values.iter().sum::<f64>()),
            Some(row) => {
                let weight = values.get(row).copied().unwrap_or(f64::NAN);
                Err(not_a_weight(block.first + row, weight, work.origin))
            }
        }
    })?;
    if sums.iter().sum::<f64>().is_finite() {
        return Ok(());
    }
    Err(work.origin.broken(
        &format!("column {WEIGHT:?}: expected weights with a finite sum, found one that overflows"),
        "divide all of them by the same number",
    ))
}

fn is_weight(weight: f64) -> bool {
    weight > 0.0 && weight.is_finite()
}

#[cold]
fn not_a_weight(row: usize, weight: f64, origin: &Origin<'_>) -> Error {
    let advice = if weight == 0.0 {
        "to leave rows out, filter them: frame.filter(pl.col(\"weight\") > 0)"
    } else if weight < 0.0 {
        "shift or clip the weights, or leave the row out with a filter"
    } else if weight.is_nan() {
        "fill it, or leave the row out: frame.filter(pl.col(\"weight\").is_not_nan())"
    } else {
        "scale the weights so that all of them are finite"
    };
    origin.broken(&format!("column {WEIGHT:?}, row {row}: expected a positive finite number, found {weight}"), advice)
}

/// The weights in one piece.
pub(super) fn whole(weights: &Numbers<Float64Type>) -> Result<ScalarBuffer<f64>> {
    if let Some(whole) = &weights.whole {
        return Ok(whole.clone());
    }
    let rows = weights.parts.iter().map(|part| part.values().len()).sum();
    let mut whole = with_room(rows, "the weights of the table")?;
    for part in &weights.parts {
        whole.extend_from_slice(part.values());
    }
    Ok(ScalarBuffer::from(whole))
}
