-- GETs a page of somebody who is signed in.
local headers, path
function init(args)
  headers, path = { ["Cookie"] = args[1], ["Accept"] = "text/html" }, args[2]
end
function request()
  return wrk.format("GET", path, headers)
end
