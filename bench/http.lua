-- Unique payments of some hundred people and devices, by the keys in `BENCH_KEY` in turn;
-- `BENCH_PAUSE_MS` is a client's pause. At the end prints how often each latency occurred.
local pause = tonumber(os.getenv("BENCH_PAUSE_MS") or "0")
local bearers, turn = {}, 0
for key in os.getenv("BENCH_KEY"):gmatch("%S+") do
  bearers[#bearers + 1] = "Bearer " .. key
end
local head = '{"payment":{"type":"purchase","currency":"BRL","amount":129.9,"method":{"type":"credit_card","card":{"network":"visa","presence":"card_not_present","bin":"41111111","last_four":"%04d"}},"backend":{"ip_address":"198.51.100.7","headers":{"User-Agent":"okhttp/4.12.0","Accept":"*/*","Accept-Encoding":"gzip","Host":"shop.example","Accept-Language":"en"}},"device":{"ip_address":"203.0.%d.7","headers":{"User-Agent":"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0","Accept":"text/html,application/xhtml+xml","Accept-Encoding":"gzip, deflate, br, zstd","Accept-Language":"pt-BR,pt;q=0.8,en;q=0.5","Sec-Fetch-Dest":"empty","Sec-Fetch-Mode":"cors","Sec-Fetch-Site":"same-origin","Origin":"https://shop.example","Referer":"https://shop.example/checkout","Cookie":"a=b"},"fingerprint":{"id":"d%d","provider":"basic"}},"user":{"id":"u%d","email":"u%d@mail.example"},"order":{"id":"o%d"},"merchant":{"id":"m1","country":"BR","category_code":"5411"},"metadata":{"cart":"%s","items":3,"channel":"web"},"analyze":{"bot_behaviour":true,"rule":{"name":"web_checkout"}}}}'
local filler = string.rep("books and music; ", 30)

function init(args)
  math.randomseed(os.time() + tonumber(tostring({}):match("0x(%x+)"), 16) % 100000)
  wrk.method = "POST"
  wrk.headers["content-type"] = "application/json"
end

function delay()
  return pause == 0 and 0 or math.random(0, 2 * pause)
end

function request()
  turn = turn % #bearers + 1
  wrk.headers["authorization"] = bearers[turn]
  local user = math.random(5000)
  wrk.body = string.format(head, math.random(9999), math.random(250), math.random(7000), user, user, math.random(1000000), filler)
  return wrk.format(nil, "/v1/payments")
end

function done(summary, latency, requests)
  for place = 1, #latency do
    print("latency", latency(place))
  end
end
