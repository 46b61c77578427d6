-- Places orders: each with a new reference, each by the next of the partners in the key file.
local keys, n, prefix = {}, 0, ""
function setup(thread)
  thread:set("seed", math.floor(os.time()) .. "-" .. tostring(thread))
end
function init(args)
  local file, few = args[1], tonumber(args[2] or "0")
  for line in io.lines(file) do
    local key, secret = line:match("(%S+) (%S+)")
    keys[#keys + 1] = { ["X-B2B-Key"] = key, ["X-B2B-Secret"] = secret, ["Content-Type"] = "application/json" }
    if #keys == few then break end
  end
  math.randomseed(os.time() + #seed)
  prefix = string.format("%x-%x-", os.time(), math.random(2 ^ 30))
end
function request()
  n = n + 1
  local body = '{"packageCode":"JP-1GB-7D","partnerRefId":"' .. prefix .. n .. '"}'
  return wrk.format("POST", "/api/b2b/v1/orders", keys[n % #keys + 1], body)
end
