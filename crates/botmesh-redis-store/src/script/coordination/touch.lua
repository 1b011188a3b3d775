-- Answers 16 not the holder or 17 touched.
if holder ~= ARGV[4] then
  return { 16 }
end
keep(ARGV[5])
return { 17 }
