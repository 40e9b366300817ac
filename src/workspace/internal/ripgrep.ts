/**
 * Searches a folder with ripgrep.
 */

import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Stream from "effect/Stream"
import type { Match, Search } from "../WorkspaceBackend.ts"
import { shown } from "./lineMatcher.ts"
import { skipped } from "./readSearch.ts"
import { join } from "./workspacePath.ts"

/** Fails if ripgrep is not there, or does not accept the expression. */
export class CannotSearch {
  readonly _tag = "CannotSearch"
}

/** Emits the matches in a real folder, or in one file of it, whose paths begin with `prefix`. */
export const search = (
  spawner: ChildProcessSpawner["Service"],
  where: { readonly folder: string; readonly file: string | undefined; readonly prefix: string },
  { glob, ignoreCase, pattern }: Search
): Stream.Stream<Match, CannotSearch> =>
  Stream.unwrap(
    Effect.map(
      spawner.spawn(
        ChildProcess.make(
          "rg",
          [...fixed, ...(ignoreCase ? ["-i"] : []), ...globs(glob), "-e", pattern, "--", `./${where.file ?? ""}`],
          {
            cwd: where.folder,
            env: { PATH: process.env["PATH"] },
            extendEnv: false,
            stdin: "ignore",
            stderr: "ignore",
            killSignal: "SIGKILL"
          }
        )
      ),
      (running) =>
        Stream.concat(
          running.stdout.pipe(
            Stream.decodeText,
            Stream.splitLines,
            Stream.flatMap((line) => matchOf(line, where.prefix))
          ),
          Stream.drain(
            Stream.fromEffect(
              // 1 says that nothing was found.
              Effect.flatMap(running.exitCode, (code) => (code > 1 ? Effect.fail(new CannotSearch()) : Effect.void))
            )
          )
        )
    )
  ).pipe(Stream.mapError(() => new CannotSearch()))

const fixed = [
  ..."--no-config --no-ignore --hidden --no-messages --color=never --crlf".split(" "),
  ..."--null --line-number --with-filename --no-heading --max-columns=4096 --max-columns-preview".split(" "),
  ...[...skipped].flatMap((name) => ["--glob", `!**/${name}`])
]

const globs = (glob: string | undefined): ReadonlyArray<string> =>
  glob === undefined ? [] : ["--glob", glob.includes("/") ? `/${glob.replace(/^(?:\.?\/)+/, "")}` : `**/${glob}`]

/** Reads `path NUL number:text`. Other lines are about binary files. */
const matchOf = (line: string, prefix: string): Stream.Stream<Match> => {
  const [path, rest] = line.split("\0", 2)
  const colon = rest?.indexOf(":") ?? -1
  if (path === undefined || rest === undefined || colon < 1) return Stream.empty
  const text = rest.slice(colon + 1)
  return Stream.succeed({
    path: join(prefix, path.replace(/^\.\//, "")),
    line: Number(rest.slice(0, colon)),
    text: shown(text.replace(/\r$/, ""))
  })
}
