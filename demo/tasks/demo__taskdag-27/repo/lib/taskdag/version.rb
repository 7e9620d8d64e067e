# frozen_string_literal: true

module Taskdag
  VERSION = "1.1.0"
end
