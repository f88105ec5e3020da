-- Bodies from a file, one a line, sent in turn; `BENCH_PAUSE_MS` is a client's pause.
local pause = tonumber(os.getenv("BENCH_PAUSE_MS") or "0")
local requests, turn = {}, 0

function init(args)
  local headers = {
    ["content-type"] = "application/json",
    ["authorization"] = "Bearer " .. os.getenv("BENCH_KEY"),
  }
  for line in io.lines(os.getenv("BENCH_BODIES")) do
    requests[#requests + 1] = wrk.format("POST", "/v1/payments", headers, line)
  end
end

function delay()
  return pause == 0 and 0 or math.random(0, 2 * pause)
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end
