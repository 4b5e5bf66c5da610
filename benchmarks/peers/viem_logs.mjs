// viem's getLogs with its event decoded: node viem_logs.mjs URL CONTRACTS FIRST LAST, a block at a time.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.NODE_PATH + "/");
const { createPublicClient, http, parseAbiItem } = await import(pathToFileURL(require.resolve("viem")).href);

const [url, list, first, last] = process.argv.slice(2);
const address = list.split(",");
const event = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)");
const client = createPublicClient({ transport: http(url, { timeout: 600_000 }) });
const block = (number) => client.getLogs({ address, event, fromBlock: BigInt(number), toBlock: BigInt(number) });

await block(first);
let units = 0, sum = 0;
const cpu = process.cpuUsage();
const begun = process.hrtime.bigint();
for (let number = Number(first); number <= Number(last); number++) {
  for (const log of await block(number)) {
    units += 1;
    sum += parseInt(log.args.to.slice(-4), 16);
  }
}
const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
const used = process.cpuUsage(cpu);
console.log(JSON.stringify({
  seconds, cpu: (used.user + used.system) / 1e6, units, sum, rss: process.resourceUsage().maxRSS,
}));
process.exit(0);
