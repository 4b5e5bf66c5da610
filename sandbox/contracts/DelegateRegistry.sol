// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A registry of delegations with the outward form of delegate.xyz v2: `from` is the vault, `to` the delegate.
contract DelegateRegistry {
    enum DelegationType {
        NONE,
        ALL,
        CONTRACT,
        ERC721,
        ERC20,
        ERC1155
    }

    struct Delegation {
        DelegationType type_;
        address to;
        address from;
        bytes32 rights;
        address contract_;
        uint256 tokenId;
        uint256 amount;
    }

    mapping(bytes32 => Delegation) private delegations;
    mapping(address => bytes32[]) private incoming;
    mapping(address => bytes32[]) private outgoing;
    mapping(bytes32 => bool) private listed;

    event DelegateAll(address indexed from, address indexed to, bytes32 rights, bool enable);
    event DelegateContract(
        address indexed from, address indexed to, address indexed contract_, bytes32 rights, bool enable
    );
    event DelegateERC721(
        address indexed from,
        address indexed to,
        address indexed contract_,
        uint256 tokenId,
        bytes32 rights,
        bool enable
    );
    event DelegateERC1155(
        address indexed from,
        address indexed to,
        address indexed contract_,
        uint256 tokenId,
        bytes32 rights,
        uint256 amount
    );

    function delegateAll(address to, bytes32 rights, bool enable) external payable returns (bytes32 hash) {
        hash = _set(Delegation(DelegationType.ALL, to, msg.sender, rights, address(0), 0, enable ? 1 : 0));
        emit DelegateAll(msg.sender, to, rights, enable);
    }

    function delegateContract(address to, address contract_, bytes32 rights, bool enable)
        external
        payable
        returns (bytes32 hash)
    {
        hash = _set(Delegation(DelegationType.CONTRACT, to, msg.sender, rights, contract_, 0, enable ? 1 : 0));
        emit DelegateContract(msg.sender, to, contract_, rights, enable);
    }

    function delegateERC721(address to, address contract_, uint256 tokenId, bytes32 rights, bool enable)
        external
        payable
        returns (bytes32 hash)
    {
        hash = _set(Delegation(DelegationType.ERC721, to, msg.sender, rights, contract_, tokenId, enable ? 1 : 0));
        emit DelegateERC721(msg.sender, to, contract_, tokenId, rights, enable);
    }

    function delegateERC1155(address to, address contract_, uint256 tokenId, bytes32 rights, uint256 amount)
        external
        payable
        returns (bytes32 hash)
    {
        hash = _set(Delegation(DelegationType.ERC1155, to, msg.sender, rights, contract_, tokenId, amount));
        emit DelegateERC1155(msg.sender, to, contract_, tokenId, rights, amount);
    }

    function checkDelegateForAll(address to, address from, bytes32 rights) public view returns (bool) {
        return _amount(DelegationType.ALL, to, from, rights, address(0), 0) != 0;
    }

    function checkDelegateForContract(address to, address from, address contract_, bytes32 rights)
        public
        view
        returns (bool)
    {
        return checkDelegateForAll(to, from, rights)
            || _amount(DelegationType.CONTRACT, to, from, rights, contract_, 0) != 0;
    }

    function checkDelegateForERC721(address to, address from, address contract_, uint256 tokenId, bytes32 rights)
        external
        view
        returns (bool)
    {
        return checkDelegateForContract(to, from, contract_, rights)
            || _amount(DelegationType.ERC721, to, from, rights, contract_, tokenId) != 0;
    }

    function checkDelegateForERC1155(address to, address from, address contract_, uint256 tokenId, bytes32 rights)
        external
        view
        returns (uint256)
    {
        if (checkDelegateForContract(to, from, contract_, rights)) return type(uint256).max;
        return _amount(DelegationType.ERC1155, to, from, rights, contract_, tokenId);
    }

    function getIncomingDelegations(address to) external view returns (Delegation[] memory) {
        return _live(incoming[to]);
    }

    function getOutgoingDelegations(address from) external view returns (Delegation[] memory) {
        return _live(outgoing[from]);
    }

    function _amount(
        DelegationType type_,
        address to,
        address from,
        bytes32 rights,
        address contract_,
        uint256 tokenId
    ) private view returns (uint256) {
        uint256 full = delegations[_key(type_, to, from, 0, contract_, tokenId)].amount;
        if (rights == 0) return full;
        uint256 limited = delegations[_key(type_, to, from, rights, contract_, tokenId)].amount;
        return full > limited ? full : limited;
    }

    function _key(
        DelegationType type_,
        address to,
        address from,
        bytes32 rights,
        address contract_,
        uint256 tokenId
    ) private pure returns (bytes32) {
        return keccak256(abi.encode(type_, to, from, rights, contract_, tokenId));
    }

    function _set(Delegation memory wanted) private returns (bytes32 key) {
        key = _key(wanted.type_, wanted.to, wanted.from, wanted.rights, wanted.contract_, wanted.tokenId);
        delegations[key] = wanted;
        if (!listed[key]) {
            listed[key] = true;
            incoming[wanted.to].push(key);
            outgoing[wanted.from].push(key);
        }
    }

    function _live(bytes32[] storage keys) private view returns (Delegation[] memory found) {
        uint256 count;
        for (uint256 i = 0; i < keys.length; i++) if (delegations[keys[i]].amount != 0) count++;
        found = new Delegation[](count);
        for (uint256 i = keys.length; i > 0; i--) {
            Delegation memory one = delegations[keys[i - 1]];
            if (one.amount == 0) continue;
            // Only amounts that somebody chose are told; for the other kinds the real registry says 0.
            if (one.type_ != DelegationType.ERC20 && one.type_ != DelegationType.ERC1155) one.amount = 0;
            found[--count] = one;
        }
    }
}
