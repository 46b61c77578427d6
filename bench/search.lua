-- GETs searches, in turn, each with a word at its end that nobody has sent before.
local paths, n = {}, os.time() * 1000000
function init(args)
  for i = 1, #args do paths[#paths + 1] = args[i] end
end
function request()
  n = n + 1
  local word, rest = {}, n
  while rest > 0 do
    word[#word + 1] = string.char(97 + rest % 26)
    rest = math.floor(rest / 26)
  end
  return wrk.format("GET", paths[n % #paths + 1] .. "+" .. table.concat(word))
end
