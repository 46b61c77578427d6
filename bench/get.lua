-- GETs one or more paths, in turn, with the first partner's key.
local headers, paths, n = {}, {}, 0
function init(args)
  local key, secret = io.lines(args[1])():match("(%S+) (%S+)")
  headers = { ["X-B2B-Key"] = key, ["X-B2B-Secret"] = secret, ["Accept-Encoding"] = args[2] }
  for i = 3, #args do paths[#paths + 1] = args[i] end
end
function request()
  n = n + 1
  return wrk.format("GET", paths[n % #paths + 1], headers)
end
