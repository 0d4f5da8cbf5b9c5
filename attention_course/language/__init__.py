"""What chapter 08's experiments train and measure: a decoder of today, tasks, training loops."""
