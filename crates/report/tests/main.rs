//! Tests of whole reports: every form, hostile records and schemas. One binary links faster than several.

mod exports;
mod forms;
mod hostile_numbers;
mod schemas;
