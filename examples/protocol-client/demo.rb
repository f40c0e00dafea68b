# Computes on an engine through client.rb: ruby -I GENERATED demo.rb ADDRESS OPERATORS.json [--pause]
#
# --pause: waits for a line on standard input after it has printed "ready", and computes again, for example after the
# connection was cut.

require_relative "client"

address, table, pause = ARGV
session = Teletensor::Session.new(address, Teletensor::Operators.new(table))
puts "engine #{session.hello.engine_version}, session #{session.hello.session_id}, #{session.hello.devices.map(&:name).join("; ")}"

x = session.tensor([1, 2, 3, 4, 5, 6], [2, 3])
y = session.call(:matmul, x, session.call(:transpose, x, 0, 1))
z = session.call(:add, y, session.call(:ones, [2, 2]), alpha: 10)
value = session.read(z)
puts "add: #{value.dtype} #{value.sizes} #{value.values}"
puts "sum: #{session.read(session.call(:sum, z, dim: [0], keepdim: true)).values}"

# More bytes than an instruction may have: uploaded and downloaded beside the frames.
count = 300_000
large = session.tensor(Array.new(count) { |i| i }, [count], "int64")
doubled = session.read(session.call(:add, large, large))
puts "large: #{doubled.sizes} #{doubled.values.sum}"

# The error of an operation is the value of its result, and of what depends on it.
parts = session.call(:split_with_sizes, x, [1, 1], 0, count: 2)
puts "parts: #{parts.map { |part| session.read(part).values }}"
failed = session.call(:matmul, x, x)
begin
  session.read(session.call(:sum, failed))
rescue Teletensor::OperationError => error
  puts "error: #{error.kind} #{error.message}"
end
puts "still: #{session.read(session.call(:sum, x)).values}"

if pause
  puts "ready"
  $stdout.flush
  $stdin.gets
  session.call(:add, x, x)
  puts "after: #{session.read(session.call(:sum, x)).values}, resumed #{session.resumed} times"
end
session.release(large)
session.synchronize
session.close
puts "closed"
