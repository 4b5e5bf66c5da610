// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A registry of names with the outward form of ENS. The keeper may set everything, and may begin again from nothing.
contract NameRegistry {
    struct Record {
        address owner;
        address resolver;
        uint64 ttl;
    }

    // SHA-256 of "sandbox keeper", its first 20 bytes.
    address internal constant KEEPER = 0x50B4e68606519D814ed1E72Fd5029DE856870b5C;

    uint256 public era;
    mapping(uint256 => mapping(bytes32 => Record)) private records;

    event NewOwner(bytes32 indexed node, bytes32 indexed label, address owner);
    event NewResolver(bytes32 indexed node, address resolver);

    function restart() external {
        require(msg.sender == KEEPER, "Names: keeper only");
        era++;
    }

    function owner(bytes32 node) external view returns (address) {
        return records[era][node].owner;
    }

    function resolver(bytes32 node) external view returns (address) {
        return records[era][node].resolver;
    }

    function recordExists(bytes32 node) external view returns (bool) {
        return records[era][node].owner != address(0);
    }

    function mayChange(bytes32 node, address who) public view returns (bool) {
        return who == KEEPER || (who != address(0) && who == records[era][node].owner);
    }

    function setSubnodeRecord(bytes32 node, bytes32 label, address owner_, address resolver_, uint64 ttl) external {
        require(mayChange(node, msg.sender), "Names: not yours");
        bytes32 below = keccak256(abi.encodePacked(node, label));
        records[era][below] = Record(owner_, resolver_, ttl);
        emit NewOwner(node, label, owner_);
        emit NewResolver(below, resolver_);
    }

    function setResolver(bytes32 node, address resolver_) external {
        require(mayChange(node, msg.sender), "Names: not yours");
        records[era][node].resolver = resolver_;
        emit NewResolver(node, resolver_);
    }
}

/// Records of names: whose address one stands for, and what an address is called.
contract NameResolver {
    NameRegistry internal constant REGISTRY = NameRegistry(0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e);

    mapping(uint256 => mapping(bytes32 => address)) private addresses;
    mapping(uint256 => mapping(bytes32 => string)) private names;

    event AddrChanged(bytes32 indexed node, address a);
    event NameChanged(bytes32 indexed node, string name);

    function addr(bytes32 node) public view returns (address) {
        return addresses[REGISTRY.era()][node];
    }

    /// Of other coins nobody has said anything: no bytes, as ENS's own public resolver answers.
    function addr(bytes32 node, uint256 coinType) external view returns (bytes memory) {
        address a = coinType == 60 ? addr(node) : address(0);
        return a == address(0) ? bytes("") : abi.encodePacked(a);
    }

    function text(bytes32, string calldata) external pure returns (string memory) {
        return "";
    }

    function contenthash(bytes32) external pure returns (bytes memory) {
        return "";
    }

    function name(bytes32 node) external view returns (string memory) {
        return names[REGISTRY.era()][node];
    }

    function setAddr(bytes32 node, address a) external {
        require(REGISTRY.mayChange(node, msg.sender), "Names: not yours");
        addresses[REGISTRY.era()][node] = a;
        emit AddrChanged(node, a);
    }

    function setName(bytes32 node, string calldata name_) external {
        require(REGISTRY.mayChange(node, msg.sender), "Names: not yours");
        names[REGISTRY.era()][node] = name_;
        emit NameChanged(node, name_);
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x3b3b57de || id == 0xf1cb7e06 || id == 0x59d1d43c || id == 0xbc1c58d1
            || id == 0x691f3431;
    }
}

/// What stands over all names that end in .eth: it answers for those that have no resolver of their own, and of them
/// it knows none (ENSIP-10).
contract EthResolver {
    error UnreachableName(bytes name);

    function resolve(bytes calldata name, bytes calldata) external pure returns (bytes memory) {
        revert UnreachableName(name);
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x9061b923;
    }
}

/// One entry to all records, with the outward form of ENS's universal resolver. Gateways are for lookups elsewhere,
/// which no resolver here asks for by itself.
contract UniversalResolver {
    NameRegistry internal constant REGISTRY = NameRegistry(0x00000000000C2E074eC69A0dFb2997BA6C7d2e1e);

    error ResolverNotFound(bytes name);
    error ResolverNotContract(bytes name, address resolver);
    error UnsupportedResolverProfile(bytes4 selector);
    error ResolverError(bytes errorData);
    error ReverseAddressMismatch(string primary, bytes primaryAddress);
    error EmptyAddress();

    struct ResolverInfo {
        bytes name;
        uint256 offset;
        bytes32 node;
        address resolver;
        bool extended;
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7;
    }

    function batchGateways() external pure returns (string[] memory) {
        return new string[](0);
    }

    function resolve(bytes calldata name, bytes calldata data) external view returns (bytes memory, address) {
        return _resolve(name, data);
    }

    function resolveWithGateways(bytes calldata name, bytes calldata data, string[] calldata)
        external
        view
        returns (bytes memory, address)
    {
        return _resolve(name, data);
    }

    /// The resolver of the name or of the nearest name above it that has one; nobody's where there is none.
    function findResolver(bytes memory name) public view returns (address resolver, bytes32 node, uint256 offset) {
        while (true) {
            node = _node(name, offset);
            resolver = REGISTRY.resolver(node);
            if (resolver != address(0) || name[offset] == 0) break;
            offset += 1 + uint8(name[offset]);
        }
        if (resolver == address(0)) offset = 0;
        node = _node(name, 0);
    }

    function requireResolver(bytes memory name) public view returns (ResolverInfo memory info) {
        info.name = name;
        (info.resolver, info.node, info.offset) = findResolver(name);
        if (info.resolver == address(0)) revert ResolverNotFound(name);
        if (info.resolver.code.length == 0) revert ResolverNotContract(name, info.resolver);
        info.extended = _isExtended(info.resolver);
        // Only a resolver of wildcards speaks for the names below its own.
        if (info.offset != 0 && !info.extended) revert ResolverNotFound(name);
    }

    function reverse(bytes calldata lookupAddress, uint256 coinType)
        external
        view
        returns (string memory primary, address resolver, address reverseResolver)
    {
        return _reverse(lookupAddress, coinType);
    }

    function reverseWithGateways(bytes calldata lookupAddress, uint256 coinType, string[] calldata)
        external
        view
        returns (string memory primary, address resolver, address reverseResolver)
    {
        return _reverse(lookupAddress, coinType);
    }

    function _reverse(bytes calldata lookupAddress, uint256 coinType)
        private
        view
        returns (string memory primary, address resolver, address reverseResolver)
    {
        if (lookupAddress.length == 0) revert EmptyAddress();
        bytes memory digits = _hex(lookupAddress);
        bytes memory below = coinType == 60 ? bytes("\x04addr\x07reverse\x00") : bytes("\x07default\x07reverse\x00");
        bytes memory name = abi.encodePacked(uint8(digits.length), digits, below);
        bytes memory said;
        (said, reverseResolver) = _resolve(name, abi.encodeWithSelector(0x691f3431, _node(name, 0)));
        primary = abi.decode(said, (string));
        if (bytes(primary).length == 0) return ("", address(0), reverseResolver);
        bytes memory forward = _wire(primary);
        (said, resolver) = _resolve(forward, abi.encodeWithSelector(0x3b3b57de, _node(forward, 0)));
        address stands = abi.decode(said, (address));
        if (lookupAddress.length != 20 || stands != address(bytes20(lookupAddress))) {
            revert ReverseAddressMismatch(primary, abi.encodePacked(stands));
        }
    }

    function _resolve(bytes memory name, bytes memory data) private view returns (bytes memory said, address resolver) {
        ResolverInfo memory info = requireResolver(name);
        resolver = info.resolver;
        if (info.extended) data = abi.encodeWithSelector(0x9061b923, name, data);
        bool good;
        (good, said) = resolver.staticcall(data);
        if (!good) {
            // Lookups elsewhere go through as they are; everything else is the resolver's own error.
            if (said.length >= 4 && bytes4(said) == 0x556f1830) {
                assembly {
                    revert(add(said, 32), mload(said))
                }
            }
            revert ResolverError(said);
        }
        if (said.length == 0) revert UnsupportedResolverProfile(bytes4(data));
        if (info.extended) said = abi.decode(said, (bytes));
    }

    /// Whether a resolver says that it answers for wildcards (ENSIP-10).
    function _isExtended(address resolver) private view returns (bool) {
        (bool good, bytes memory said) = resolver.staticcall(abi.encodeWithSelector(0x01ffc9a7, bytes4(0x9061b923)));
        return good && said.length == 32 && abi.decode(said, (uint256)) == 1;
    }

    /// The namehash of a name in DNS's form, from one of its labels on.
    function _node(bytes memory name, uint256 place) private pure returns (bytes32) {
        uint256 size = uint8(name[place]);
        if (size == 0) return bytes32(0);
        bytes memory label = new bytes(size);
        for (uint256 i = 0; i < size; i++) label[i] = name[place + 1 + i];
        return keccak256(abi.encodePacked(_node(name, place + 1 + size), keccak256(label)));
    }

    /// A name with dots in DNS's form.
    function _wire(string memory dotted) private pure returns (bytes memory wire) {
        bytes memory name = bytes(dotted);
        wire = new bytes(name.length + 2);
        uint256 start = 0;
        for (uint256 i = 0; i <= name.length; i++) {
            if (i == name.length || name[i] == ".") {
                wire[start] = bytes1(uint8(i - start));
                start = i + 1;
            } else {
                wire[i + 1] = name[i];
            }
        }
    }

    function _hex(bytes calldata raw) private pure returns (bytes memory digits) {
        bytes16 alphabet = "0123456789abcdef";
        digits = new bytes(raw.length * 2);
        for (uint256 i = 0; i < raw.length; i++) {
            digits[2 * i] = alphabet[uint8(raw[i]) >> 4];
            digits[2 * i + 1] = alphabet[uint8(raw[i]) & 15];
        }
    }
}
