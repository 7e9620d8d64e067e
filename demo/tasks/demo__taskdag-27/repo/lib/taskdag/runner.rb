# frozen_string_literal: true

module Taskdag
  # Runs the tasks of a graph, stage by stage, several at once.
  class Runner
    # What became of a task: :done, :failed or :skipped, and its value or error.
    Result = Struct.new(:state, :value) do
      def done?
        state == :done
      end
    end

    def initialize(graph, jobs: 4)
      raise ArgumentError, "there must be at least one job" if jobs < 1

      @graph = graph
      @jobs = jobs
    end

    # Run everything; names to results. What waits for a failed task is skipped.
    def run
      results = {}
      @graph.stages.each do |stage|
        ready, blocked = stage.partition { |name| @graph[name].after.all? { |other| results[other].done? } }
        blocked.each { |name| results[name] = Result.new(:skipped, nil) }
        results.merge!(run_together(ready))
      end
      @graph.names.to_h { |name| [name, results[name]] }
    end

    private

    def run_together(names)
      names.each_slice(@jobs).flat_map do |slice|
        slice.map { |name| Thread.new { [name, attempt(name)] } }.map(&:value)
      end.to_h
    end

    def attempt(name)
      Result.new(:done, @graph[name].call)
    rescue StandardError => e
      Result.new(:failed, e)
    end
  end
end
