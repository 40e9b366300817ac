import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Effect, Random } from "effect"
import * as fs from "node:fs"
import { replaceFile } from "../../src/mcp/internal/replaceFile.ts"
import { folder } from "../support/folder.ts"

const known = { nextIntUnsafe: () => 0x07070707, nextDoubleUnsafe: () => 0 }
const draftOf = (file: string) => `${file}.${"07".repeat(8)}`

layer(NodeServices.layer)("replaceFile", (it) => {
  it.effect("writes into no existing draft, such as a link", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const [file, victim] = [`${place}/file`, `${place}/victim`]
      fs.writeFileSync(file, "before")
      fs.writeFileSync(victim, "untouched")
      fs.symlinkSync(victim, draftOf(file))
      yield* Effect.flip(replaceFile(file, "after"))
      assert.deepStrictEqual([fs.readFileSync(file, "utf8"), fs.readFileSync(victim, "utf8")], ["before", "untouched"])
      yield* replaceFile(file, "after")
      assert.deepStrictEqual([fs.readFileSync(file, "utf8"), fs.statSync(file).mode & 0o777], ["after", 0o600])
    }).pipe(Effect.provideService(Random.Random, known))
  )

  it.effect("replaces a link without following it", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const [file, victim] = [`${place}/file`, `${place}/victim`]
      fs.writeFileSync(victim, "untouched")
      fs.symlinkSync(victim, file)
      yield* replaceFile(file, "after")
      assert.deepStrictEqual([fs.readFileSync(file, "utf8"), fs.readFileSync(victim, "utf8")], ["after", "untouched"])
    })
  )

  it.effect("leaves no draft where it cannot put it in place", () =>
    Effect.gen(function* () {
      const place = yield* folder
      fs.mkdirSync(`${place}/file`)
      yield* Effect.flip(replaceFile(`${place}/file`, "after"))
      assert.deepStrictEqual(fs.readdirSync(place), ["file"])
    })
  )
})
