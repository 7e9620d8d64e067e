# frozen_string_literal: true

require "stringio"
require "tempfile"

class CliTest < Test::Unit::TestCase
  def taskdag(command, text)
    out = StringIO.new
    err = StringIO.new
    status = Tempfile.create("tasks") do |file|
      file.write(text)
      file.flush
      Taskdag::CLI.new(out, err).run([command, file.path])
    end
    [status, out.string, err.string]
  end

  def test_prints_the_order
    assert_equal([0, "fetch\ncompile\npackage\n", ""], taskdag("order", "package: compile # last\ncompile: fetch\n"))
  end

  def test_prints_the_stages
    assert_equal([0, "a b\nc\n", ""], taskdag("stages", "a:\nb:\nc: a b\n"))
  end

  def test_usage
    status, out, err = taskdag("dance", "")
    assert_equal([2, "", "usage: taskdag order|stages FILE\n"], [status, out, err])
  end
end
