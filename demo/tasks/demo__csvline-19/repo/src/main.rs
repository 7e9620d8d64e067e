use std::io::{self, Read};
use std::process::ExitCode;

use csvline::{Dialect, Table, Writer};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["select", columns] => match select(columns) {
            Ok(text) => {
                print!("{}", text);
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("csvline: {}", error);
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: csvline select COLUMN,COLUMN,... < FILE");
            ExitCode::from(2)
        }
    }
}

fn select(columns: &str) -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let names: Vec<&str> = columns.split(',').collect();
    let table = Table::read(&text, Dialect::default())?.select(&names)?;
    let mut writer = Writer::new(Dialect::default());
    writer.write(&table.header);
    for row in &table.rows {
        writer.write(row);
    }
    Ok(writer.into_string())
}
