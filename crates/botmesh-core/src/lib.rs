//! Write a messaging bot once and run it anywhere.
