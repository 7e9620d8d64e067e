# frozen_string_literal: true

# Runs all tests; options are test-unit's.
require "test/unit"
require "taskdag"

Dir[File.join(__dir__, "*_test.rb")].sort.each { |file| require file }
