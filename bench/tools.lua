-- Calls the catalog's tool: as many places in turn as are given, each message with an id of its own.
local places, n = {}, 0
function init(args)
  for i = 1, #args do places[#places + 1] = args[i] end
end
function request()
  n = n + 1
  local body = string.format(
    '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"get_esim_catalog","arguments":{"countryCode":"%s"}}}',
    n, places[n % #places + 1])
  return wrk.format("POST", "/api/mcp", { ["Content-Type"] = "application/json" }, body)
end
