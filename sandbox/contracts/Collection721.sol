// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {Collection} from "./Collection.sol";

interface IReceiver721 {
    function onERC721Received(address operator, address from, uint256 id, bytes calldata data)
        external
        returns (bytes4);
}

/// An ERC-721 collection that anybody may mint from.
contract Collection721 is Collection {
    mapping(uint256 => address) private holders;
    mapping(address => uint256) private counts;
    mapping(uint256 => address) private approvals;

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId);

    constructor(string memory name_, string memory symbol_, string memory metadata_, address keeper_)
        Collection(name_, symbol_, metadata_, keeper_)
    {}

    function supportsInterface(bytes4 id) public pure virtual returns (bool) {
        // ERC-165, ERC-721 and its metadata extension.
        return id == 0x01ffc9a7 || id == 0x80ac58cd || id == 0x5b5e139f;
    }

    function balanceOf(address holder) public view returns (uint256) {
        require(holder != address(0), "ERC721: zero address holds nothing");
        return counts[holder];
    }

    function ownerOf(uint256 id) public view returns (address holder) {
        holder = holders[id];
        require(holder != address(0), "ERC721: no such token");
    }

    function getApproved(uint256 id) public view returns (address) {
        ownerOf(id);
        return approvals[id];
    }

    function tokenURI(uint256 id) external view returns (string memory) {
        ownerOf(id);
        return _link(id);
    }

    function mint(address to, uint256 id) external {
        _move(address(0), to, id, 1);
    }

    function burn(uint256 id) external {
        _onlyAllowed(id);
        _move(ownerOf(id), address(0), id, 1);
    }

    function approve(address to, uint256 id) external {
        address holder = ownerOf(id);
        require(msg.sender == holder || isApprovedForAll[holder][msg.sender], "ERC721: not yours to approve");
        approvals[id] = to;
        emit Approval(holder, to, id);
    }

    function transferFrom(address from, address to, uint256 id) public {
        require(to != address(0), "ERC721: transfer to nobody");
        _onlyAllowed(id);
        _move(from, to, id, 1);
    }

    function safeTransferFrom(address from, address to, uint256 id) external {
        safeTransferFrom(from, to, id, "");
    }

    function safeTransferFrom(address from, address to, uint256 id, bytes memory data) public {
        transferFrom(from, to, id);
        if (to.code.length != 0) {
            bytes4 answer = IReceiver721(to).onERC721Received(msg.sender, from, id, data);
            require(answer == IReceiver721.onERC721Received.selector, "ERC721: receiver refused");
        }
    }

    function _onlyAllowed(uint256 id) private view {
        address holder = ownerOf(id);
        require(
            msg.sender == holder || msg.sender == approvals[id] || isApprovedForAll[holder][msg.sender],
            "ERC721: not yours to move"
        );
    }

    function _move(address from, address to, uint256 id, uint256) internal virtual override {
        address holder = holders[id];
        if (from == address(0)) {
            require(to != address(0), "ERC721: mint to nobody");
            require(holder == address(0), "ERC721: already minted");
        } else {
            require(holder == from, "ERC721: not the owner");
            counts[from]--;
            delete approvals[id];
        }
        holders[id] = to;
        if (to != address(0)) counts[to]++;
        emit Transfer(from, to, id);
    }
}
