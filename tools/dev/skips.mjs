/** A reporter that prints skipped tests, a line for each file. */
import { relative } from "node:path"

export default class Skips {
  onTestRunEnd(modules) {
    for (const module of modules) {
      const skipped = [...module.children.allTests("skipped")]
      if (skipped.length === 0) continue
      const [{ name }] = skipped
      const others = skipped.length === 1 ? "" : ` and ${skipped.length - 1} more`
      console.log(` SKIP  ${relative(process.cwd(), module.moduleId)}: ${name}${others}`)
    }
  }
}
