// A client as its users write one: of types generated from the description.
import createClient from "openapi-fetch";
import { argv } from "node:process";
import type { paths } from "./api.d.ts";

const [baseUrl, key, project] = argv.slice(2);
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

function must<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const made = must(await api.POST("/buckets", { body: { project, name: "generated" } }));
const name: string = made.data.name;
const list = must(await api.GET("/buckets", { params: { query: { limit: 100 } } }));
if (!list.data.some((bucket) => bucket.name === name)) throw new Error("it is not listed");
const next: string | null = list.meta.next_cursor;

const absent = await api.GET("/databases/{id}", { params: { path: { id: "db_none" } } });
if (absent.error?.error.code !== "not_found" || next !== null) throw new Error(JSON.stringify(absent));
const gone = must(await api.DELETE("/buckets/{id}", { params: { path: { id: made.data.id } } }));
if (!gone.data.deleted) throw new Error("it is not deleted");
