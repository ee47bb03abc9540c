//! Vectors of length 1.

/// Brings a vector to length 1; one of zeros stays. `None` if it holds what is no number.
pub(crate) fn normalised(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    if vector.iter().any(|number| !number.is_finite()) {
        return None;
    }
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        for number in &mut vector {
            *number = (f64::from(*number) / length) as f32;
        }
    }
    Some(vector)
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn vectors_have_length_one_or_none() {
        assert_eq!(normalised(vec![3.0, 4.0]), Some(vec![0.6, 0.8]));
        assert_eq!(normalised(vec![0.0; 2]), Some(vec![0.0; 2]));
        assert_eq!(normalised(vec![f32::MAX, 0.0]), Some(vec![1.0, 0.0]));
        assert_eq!(normalised(vec![f32::NAN]), None);
    }
}
