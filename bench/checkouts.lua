-- Checks out: 64 users in turn, 45 times each (50 may be open), then the next 64; each from an address of its own.
local tokens, n, start = {}, 0, 0
function init(args)
  for line in io.lines(args[1]) do tokens[#tokens + 1] = line end
  start = tonumber(args[2])
end
function request()
  local user = start + math.floor(n / (64 * 45)) * 64 + n % 64
  local headers = { ["Authorization"] = "Bearer " .. tokens[user % #tokens + 1], ["Content-Type"] = "application/json",
    ["X-Forwarded-For"] = string.format("10.%d.%d.%d", math.floor(user / 65536) % 256, math.floor(user / 256) % 256, user % 256) }
  n = n + 1
  return wrk.format("POST", "/api/agentic/checkout", headers, '{"packageCode":"JP-1GB-7D"}')
end
