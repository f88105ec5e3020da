import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const [url, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

const created = await client.POST("/v1/payments", {
  params: { header: { "Idempotency-Key": "order-2-create" } },
  body: {
    payment: {
      id: "ts-1",
      type: "purchase",
      currency: "EUR",
      amount: 12.5,
      method: { type: "credit_card", card: { network: "visa", presence: "card_not_present" } },
      merchant: { id: "m-1" },
      analyze: { bot_behaviour: true },
    },
  },
});
if (created.error) throw new Error(created.error.errors[0]?.message);
const action = created.data.payment.analyses.bot_behaviour?.action;
const updated = await client.PATCH("/v1/payments/{id}", {
  params: { path: { id: created.data.payment.id } },
  body: { payment: { status: "failed" } },
});
if (updated.error) throw new Error(updated.error.errors[0]?.message);
const event = await client.POST("/v1/events", {
  body: { event: { type: "sign_in", data: { user_id: "u-1", result: "failure" } } },
});
if (event.error) throw new Error(event.error.errors[0]?.message);
const type = "event" in event.data ? event.data.event.type : "a batch";
console.log(JSON.stringify([action, updated.data.payment.status, type]));
