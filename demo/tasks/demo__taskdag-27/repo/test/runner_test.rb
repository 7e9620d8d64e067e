# frozen_string_literal: true

class RunnerTest < Test::Unit::TestCase
  def test_values_are_collected
    graph = Taskdag::Graph.define do
      task(:a) { 1 }
      task(:b, after: :a) { 2 }
      task(:c)
    end
    results = Taskdag::Runner.new(graph).run
    assert_equal({ a: 1, b: 2, c: nil }, results.transform_values(&:value))
    assert(results.values.all?(&:done?))
  end

  def test_what_waits_for_a_failure_is_skipped
    graph = Taskdag::Graph.define do
      task(:a) { raise "no" }
      task(:b, after: :a) { 1 }
      task(:c, after: :b) { 1 }
      task(:d) { 1 }
    end
    states = Taskdag::Runner.new(graph, jobs: 1).run.transform_values(&:state)
    assert_equal({ a: :failed, b: :skipped, c: :skipped, d: :done }, states)
  end

  def test_order_is_kept
    seen = Queue.new
    graph = Taskdag::Graph.define do
      task(:late, after: :early) { seen << :late }
      task(:early) { seen << :early }
    end
    Taskdag::Runner.new(graph).run
    assert_equal(%i[early late], [seen.pop, seen.pop])
  end
end
