//! Tests of whole reports: every form, hostile records and schemas. One binary saves linking several.

mod exports;
mod forms;
mod hostile_numbers;
mod schemas;
