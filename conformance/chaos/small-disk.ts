import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { outputOf } from '@kpng/linux'

const sizeKb = 512

/** A disk of its own for what the proxy keeps there, which can be full. */
export class SmallDisk {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  static async mount(folder: string): Promise<SmallDisk> {
    const path = join(folder, 'disk')
    await mkdir(path)
    await outputOf('mount', ['-t', 'tmpfs', '-o', `size=${sizeKb}k,mode=700`, 'kpng-chaos', path], { limitMs: 10_000 })
    return new SmallDisk(path)
  }

  async fill(): Promise<void> {
    // It fails when nothing more fits, which is the point.
    await writeFile(join(this.path, 'full'), Buffer.alloc(2 * sizeKb * 1024)).catch(() => {})
  }

  async free(): Promise<void> {
    await rm(join(this.path, 'full'), { force: true })
  }

  async unmount(): Promise<void> {
    await outputOf('umount', ['-l', this.path], { limitMs: 10_000 })
  }
}
