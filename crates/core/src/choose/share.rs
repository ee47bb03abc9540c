//! Shares: how one budget is parted among layers, and where room flows that a layer does not use.

/// The share of a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Tokens that it is meant to have.
    pub tokens: u64,
    /// Whether it gives way to the fixed layers, and may have room that others do not use.
    pub is_flexible: bool,
    /// Layers of a higher priority get unused room first.
    pub priority: f64,
}

/// Allocates `total` tokens: fixed layers first, in their order; flexible ones part the rest in proportion to their shares.
pub fn allocate(total: u64, shares: &[Share]) -> Vec<u64> {
    let mut room = total;
    let mut given: Vec<u64> = shares.iter().map(|share| share.tokens).collect();
    for (given, _) in given.iter_mut().zip(shares).filter(|(_, share)| !share.is_flexible) {
        *given = (*given).min(room);
        room -= *given;
    }
    let flexible = || shares.iter().filter(|share| share.is_flexible);
    let wanted: u128 = flexible().map(|share| u128::from(share.tokens)).sum();
    if wanted > u128::from(room) {
        for (given, _) in given.iter_mut().zip(shares).filter(|(_, share)| share.is_flexible) {
            *given = (u128::from(*given) * u128::from(room) / wanted) as u64;
        }
    }
    given
}

/// Lets tokens that layers do not want flow to flexible ones that want more, by priority, then in their order.
///
/// Shape: each layer gets what it wants or less; the sum is at most that of `given`.
pub fn flow(given: &[u64], wanted: &[u64], shares: &[Share]) -> Vec<u64> {
    let mut flowed: Vec<u64> =
        given.iter().zip(wanted).map(|(have, want)| *have.min(want)).collect();
    let mut unused = given.iter().sum::<u64>() - flowed.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..shares.len()).filter(|&at| shares[at].is_flexible).collect();
    order.sort_by(|&a, &b| shares[b].priority.total_cmp(&shares[a].priority));
    for layer in order {
        let more = wanted[layer].saturating_sub(flowed[layer]).min(unused);
        flowed[layer] += more;
        unused -= more;
    }
    flowed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares() -> [Share; 4] {
        let share = |tokens, is_flexible, priority| Share { tokens, is_flexible, priority };
        [
            share(100, false, 1.0),
            share(300, true, 0.5),
            share(100, true, 0.9),
            share(50, false, 1.0),
        ]
    }

    #[test]
    fn fixed_layers_come_first_and_flexible_ones_part_the_rest() {
        assert_eq!(allocate(600, &shares()), [100, 300, 100, 50]);
        assert_eq!(allocate(350, &shares()), [100, 150, 50, 50]);
        assert_eq!(allocate(120, &shares()), [100, 0, 0, 20]);
    }

    #[test]
    fn unused_room_flows_to_the_highest_priority() {
        assert_eq!(flow(&[100, 150, 50, 50], &[10, 400, 120, 0], &shares()), [10, 220, 120, 0]);
        assert_eq!(flow(&[100, 150, 50, 50], &[200, 10, 10, 60], &shares()), [100, 10, 10, 50]);
    }
}
