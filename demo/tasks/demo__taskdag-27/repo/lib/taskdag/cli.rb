# frozen_string_literal: true

module Taskdag
  # The command line.
  class CLI
    USAGE = "usage: taskdag order|stages FILE"

    def initialize(out, err)
      @out = out
      @err = err
    end

    # Returns the exit status.
    def run(arguments)
      command, file = arguments
      return usage unless %w[order stages].include?(command) && arguments.length == 2

      graph = self.class.parse(File.read(file))
      if command == "order"
        @out.puts(graph.order)
      else
        graph.stages.each { |stage| @out.puts(stage.join(" ")) }
      end
      0
    rescue Error, SystemCallError => e
      @err.puts("taskdag: #{e.message}")
      1
    end

    # A graph from lines such as "package: compile lint". Names that have no line of their own wait for nothing.
    def self.parse(text)
      after = {}
      text.each_line do |line|
        name, others = line.sub(/#.*/, "").strip.split(":", 2)
        next unless name

        after[name.strip] = (after[name.strip] || []) + others.to_s.split
      end
      Graph.define do
        after.each { |name, others| task(name, after: others) }
        (after.values.flatten.uniq - after.keys).each { |name| task(name) }
      end
    end

    private

    def usage
      @err.puts(USAGE)
      2
    end
  end
end
