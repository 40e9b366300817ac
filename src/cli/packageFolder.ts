/** The folder of the package: two folders up from this file, and from `dist/cli` where the build puts its code. */
export const packageFolder = new URL("../../", import.meta.url)
