# frozen_string_literal: true

require_relative "lib/taskdag/version"

Gem::Specification.new do |spec|
  spec.name = "taskdag"
  spec.version = Taskdag::VERSION
  spec.summary = "Tasks that wait for each other, run in a good order"
  spec.authors = ["Maeve O'Connell"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.0"
  spec.files = Dir["lib/**/*.rb", "bin/*", "README.md"]
  spec.executables = ["taskdag"]
end
