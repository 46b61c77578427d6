-- Asks again for the orders of one partner by references that are known: r-0 to r-999.
local headers, n = nil, 0
function init(args)
  local key, secret = io.lines(args[1])():match("(%S+) (%S+)")
  headers = { ["X-B2B-Key"] = key, ["X-B2B-Secret"] = secret, ["Content-Type"] = "application/json" }
end
function request()
  n = n + 1
  local body = '{"packageCode":"JP-1GB-7D","partnerRefId":"r-' .. n % 1000 .. '"}'
  return wrk.format("POST", "/api/b2b/v1/orders", headers, body)
end
