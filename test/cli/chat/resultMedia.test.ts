import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { Media, MediaStore } from "kernai"
import { existsSync, readFileSync } from "node:fs"
import * as ResultMedia from "../../../src/cli/chat/resultMedia.ts"
import { memoryScreen } from "../support.ts"

/** A picture of 30 pixels in each direction, by its header. */
const png = Uint8Array.from(Buffer.from("89504e470d0a1a0a0000000d494844520000001e0000001e0802000000b4520ff5", "hex"))
const jpeg = Uint8Array.of(0xff, 0xd8, 0xff, 0xe0)
const look = { columns: 80, colors: false }

/** Shows a picture in a terminal with these variables, and returns what was written and what a named file has. */
const shown = Effect.fnUntraced(function* (env: { readonly [name: string]: string }, media: Media.Media) {
  const screen = memoryScreen()
  const opened = Effect.gen(function* () {
    const show = yield* ResultMedia.make(look)
    const run = yield* MediaStore.MediaStore.use((store) => store.run("a run"))
    const { id, kind, mimeType } = yield* run.put(media)
    yield* show("a run", { type: kind, fileId: id, mediaType: mimeType })
    yield* show("a run", { type: kind, fileId: "gone" })
    const [, file = ""] = /^ {2}\w+ +(\S+) /.exec(screen.progress()) ?? []
    return { file, bytes: file === "" ? undefined : new Uint8Array(readFileSync(file)) }
  }).pipe(
    Effect.scoped,
    Effect.provide([screen.layer, MediaStore.layerMemory, NodeServices.layer]),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))
  )
  return { ...(yield* opened), written: screen.progress() }
})

describe("media of results in a chat", () => {
  it.effect("are files that lines name until the chat ends", () =>
    Effect.gen(function* () {
      const { bytes, file, written } = yield* shown({ TERM: "xterm" }, Media.fromBytes(png, "image/png"))
      assert.match(written, /^ {2}image {5}\S+image-1\.png {2}\(image\/png, until the chat ends\)\n$/)
      assert.deepStrictEqual(bytes, png)
      assert.isFalse(existsSync(file))
      const pdf = yield* shown({ TERM: "xterm-kitty" }, Media.fromBytes(Uint8Array.of(1), "application/pdf"))
      assert.match(pdf.file, /document-1\.pdf$/)
    })
  )

  it.effect("are drawn by a terminal that can draw them", () =>
    Effect.gen(function* () {
      const data = Buffer.from(png).toString("base64")
      const kitty = yield* shown({ TERM: "xterm-kitty" }, Media.fromBytes(png, "image/png"))
      assert.strictEqual(kitty.written, `\u001b_Ga=T,f=100,c=3,q=2,m=0;${data}\u001b\\\n`)
      const iterm = yield* shown({ TERM_PROGRAM: "iTerm.app" }, Media.fromBytes(png, "image/png"))
      assert.strictEqual(iterm.written, `\u001b]1337;File=inline=1;size=33;width=3:${data}\u0007\n`)
    })
  )

  it("are asked for in pieces by kitty, which reads PNG only, and never through a multiplexer", () => {
    const large = new Uint8Array(5_000)
    large.set(png)
    const pieces = ResultMedia.drawn("kitty", large, look)?.match(/_G[^;]*;/g)
    assert.deepStrictEqual(pieces, ["_Ga=T,f=100,c=3,q=2,m=1;", "_Gm=0;"])
    assert.isUndefined(ResultMedia.drawn("kitty", jpeg, look))
    assert.isDefined(ResultMedia.drawn("iterm", jpeg, look))
    assert.isUndefined(ResultMedia.drawn("iterm", new Uint8Array(4 * 1024 * 1024 + 1), look))
    assert.strictEqual(ResultMedia.protocolOf({ term: "xterm-kitty", multiplexer: "/tmp/tmux" }), "none")
    assert.strictEqual(ResultMedia.protocolOf({ term: "screen-256color", program: "iTerm.app" }), "none")
    assert.strictEqual(ResultMedia.protocolOf({ term: "xterm-256color" }), "none")
  })
})
