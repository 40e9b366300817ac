/**
 * The browser of benchmarks and of the acceptance: the machine's Chromium, without a window.
 */
import { existsSync } from "node:fs"
import { type Browser, chromium } from "playwright-core"

/** Where systems put it. */
const programs: ReadonlyArray<string> = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]

/** The program; undefined where this machine has none. `apt-get install chromium` gives Debian one. */
export const program: string | undefined = programs.find((path) => existsSync(path))

/** Starts the browser. Fails where this machine has none. */
export const launch = (): Promise<Browser> => {
  if (program === undefined) throw new Error("no Chromium here: apt-get install chromium")
  return chromium.launch({ executablePath: program, args: ["--no-sandbox"] })
}
