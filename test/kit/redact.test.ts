import { assert, describe, it } from "@effect/vitest"
import { deep, redact } from "../../src/kit/redact.ts"
import { times } from "../support/longRun.ts"

describe("redact", () => {
  it("removes text that looks like the key of a well-known vendor (S-7)", () => {
    // In two halves, so that nobody's scanner takes this file for a leak.
    for (const [start, rest] of [
      ["sk-", "ant-api03-0123456789"],
      ["sk_", "live_0123456789"],
      ["pk_", "test_0123456789"],
      ["rk_", "live_0123456789"],
      ["xai-", "0123456789"],
      ["gsk_", "0123456789"],
      ["hf_", "0123456789"],
      ["ghp_", "0123456789"],
      ["gho_", "0123456789"],
      ["ghs_", "0123456789"],
      ["github_pat_", "0123456789"],
      ["glpat-", "0123456789"],
      ["xoxb-", "0123-456789"],
      ["AIza", "0123456789_0123456789"],
      ["AKIA", "0123456789AB"],
      ["eyJ", "hbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"],
      ["Bearer ", "0123.456~789+/="],
      ["bearer ", "01234567"],
      ["Basic ", "dXNlcjpwYXNz"]
    ] as const) {
      assert.strictEqual(redact(`refused: "${start}${rest}", sorry`), 'refused: "<redacted>", sorry')
    }
  })

  it("removes the values of fields named key, token, password or secret, and keeps the names (S-7)", () => {
    for (const name of [
      "api_key=",
      'apiKey":"',
      "API key: ",
      "OPENAI_API_KEY=",
      "token: ",
      "access_token=",
      'googleIdToken":"',
      'refreshToken":"',
      "password = ",
      "DB_PASSWORD=",
      "Secret='",
      "client_secret=",
      "AWS_SECRET_ACCESS_KEY="
    ]) {
      assert.strictEqual(redact(`?${name}abcdef&x=1`), `?${name}<redacted>&x=1`)
    }
  })

  it("removes the password of a URL (S-7)", () => {
    assert.strictEqual(
      redact("cannot reach postgres://kernai:p%40ss@db:5432/runs or redis://:x@cache"),
      "cannot reach postgres://kernai:<redacted>@db:5432/runs or redis://:<redacted>@cache"
    )
  })

  it("keeps words that only begin or end like a key", () => {
    for (const text of [
      "http://localhost:8080/users/a@b.org and https://a.b:443, or a@b.org",
      "a task-management-system and a desk_with_drawers",
      "sk-1234567",
      "Bearer of news",
      "Basic understanding, of basic read/write functionality.",
      "AKIA and AIza",
      "password: short",
      "token: <redacted>",
      "tokens: 1234567",
      "next_page_token: abcdef",
      "invalid_token: Signature verification failed"
    ]) {
      assert.strictEqual(redact(text), text)
    }
  })
})

describe("redact, of megabytes", () => {
  it("reads a text of repeated token prefixes once (S-12)", () => {
    for (const begins of ["eyJ-", "://a:"]) {
      const text = begins.repeat(1024 * 1024)
      assert.strictEqual(redact(text) === text, true)
    }
  })

  it("removes keys of any length", () => {
    for (const [start, char] of [
      ["sk-", "a"],
      ["AIza", "a"],
      ["AKIA", "A"],
      ["eyJ", "a"],
      ["Bearer ", "a"],
      ["Basic ", "A"],
      ["password=", "a"]
    ] as const) {
      const key = start + char.repeat(times(10_000_000, 1_000_000))
      const clean = redact(start === "eyJ" ? `${key}.${char.repeat(8)}.${char}` : key)
      assert.strictEqual(clean, start === "password=" ? "password=<redacted>" : "<redacted>")
    }
  })
})

describe("redact.deep", () => {
  const clean = (text: string) => text.replaceAll("hunter2", "-")

  it("finds a secret at any depth of JSON, also beyond the limit (S-7)", () => {
    const nested = Array.from({ length: 500 }).reduce<unknown>((inner) => [inner], "hunter2")
    const cleaned = deep(nested, clean)
    assert.strictEqual(cleaned === nested, false)
    assert.notInclude(JSON.stringify(cleaned), "hunter2")
  })

  it("redacts object keys in JSON from outside, and only there (S-7)", () => {
    assert.deepStrictEqual<unknown>(deep({ hunter2: 1, input: { hunter2: ["hunter2"] } }, clean), {
      hunter2: 1,
      input: { "-": ["-"] }
    })
  })

  it("keeps signed thinking, media and class instances unchanged, but not JSON that imitates them", () => {
    const opaque = [
      { type: "thinking", content: "hunter2" },
      { type: "image", url: "hunter2" },
      new Map([["a", "hunter2"]])
    ]
    assert.strictEqual(deep(opaque, clean), opaque)
    assert.deepStrictEqual(deep({ data: { type: "thinking", content: "hunter2" } }, clean), {
      data: { type: "thinking", content: "-" }
    })
  })

  it("returns the same object when nothing changes", () => {
    const value = { input: { a: ["b", null, 1] }, message: "c" }
    assert.strictEqual(deep(value, clean), value)
  })
})
