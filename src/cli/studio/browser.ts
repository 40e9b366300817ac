/** Opens a page in the browser of the person. */

import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { spawn } from "node:child_process"
import { Screen } from "../screen.ts"

/**
 * Opens an address through a file that only its owner can read, since other users see the arguments of a process and
 * the address may contain a token. The file is deleted with the scope; the browser outlives it.
 */
export const openBrowser = Effect.fnUntraced(
  function* (url: string) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const file = path.join(yield* fs.makeTempDirectoryScoped({ prefix: "kernai-" }), "studio.html")
    yield* fs.writeFileString(file, `<!doctype html><meta http-equiv="refresh" content="0;url=${url}">`, {
      mode: 0o600
    })
    yield* start(openerOf(process.platform, yield* Config.String("BROWSER").pipe(Config.withDefault(""))), file)
  },
  Effect.catch(() => Screen.useSync((screen) => screen.progress("no browser could be opened: open the address\n")))
)

type Opener = readonly [program: string, ...args: ReadonlyArray<string>]

/** Returns the program of a platform that opens a file. `BROWSER` names another. */
export const openerOf = (platform: NodeJS.Platform, browser: string): Opener => {
  if (browser !== "") return [browser]
  if (platform === "darwin") return ["open"]
  return platform === "win32" ? ["rundll32", "url.dll,FileProtocolHandler"] : ["xdg-open"]
}

const start = ([program, ...args]: Opener, file: string): Effect.Effect<void, Error> =>
  Effect.callback((resume) => {
    const child = spawn(program, [...args, file], { detached: true, stdio: "ignore" })
    child.on("error", (error) => resume(Effect.fail(error)))
    child.on("spawn", () => resume(Effect.void))
    child.unref()
  })
